// 2 MiB pages, size classes, tiers, pools, suggestions.

const PAGE = 2 << 20;

function pagesSection() {
	const pages = doc.hugepages.pages, hist = doc.hugepages.density_hist;
	if (pages.length === 0 && hist.length === 0)
		return null;
	const state = {by: 'tier', at: -1};
	const canvas = h('canvas', {tabindex: 0, role: 'application', 'aria-roledescription': 'map of pages', 'aria-label': 'One cell for each 2 MiB page, by address. Arrow keys move.'});
	const readout = h('p', {class: 'readout', 'aria-live': 'polite'});
	let columns = 1, cell = 11;

	const describe = i => {
		const p = pages[i];
		return `${p.addr}  ${p.tier || 'no tier'}\n${bytes(p.live_bytes)} live (${percent(or0(p.live_bytes) / PAGE)}), longest free run ${bytes(p.longest_free)}, ${p.huge ? 'huge' : 'small pages'}${p.pinned_by ? `\nheld by ${p.pinned_by} ${byId.has(p.pinned_by) ? siteName(byId.get(p.pinned_by)) : ''}: ${bytes(p.pinned_bytes)}` : ''}`;
	};

	function draw() {
		if (pages.length === 0) {
			canvas.hidden = true;
			readout.textContent = 'Single pages were not looked at.';
			return;
		}
		const width = canvas.clientWidth || 600;
		cell = pages.length > 6000 ? 7 : pages.length > 2500 ? 9 : pages.length > 400 ? 13 : 20;
		columns = Math.max(8, Math.floor(width / cell));
		const rows = Math.ceil(pages.length / columns), c = canvasOf(canvas, rows * cell + 1);
		const colors = Object.fromEntries([...TIERS, null].map(t => [t, css(tierVar(t))])), bad = css('--bad'), sunk = css('--sunk');
		pages.forEach((p, i) => {
			const x = (i % columns) * cell, y = Math.floor(i / columns) * cell, full = Math.min(1, or0(p.live_bytes) / PAGE);
			c.globalAlpha = 1;
			c.fillStyle = sunk;
			c.fillRect(x, y, cell - 1, cell - 1);
			const pinned = state.by === 'pinned';
			c.globalAlpha = pinned ? (p.pinned_by ? 1 - .75 * full : .14) : .12 + .88 * full;
			c.fillStyle = pinned ? (p.pinned_by ? bad : css('--other')) : colors[p.tier] || colors[null];
			c.fillRect(x, y, cell - 1, cell - 1);
			if (!p.huge && cell > 8 && !pinned) {
				c.globalAlpha = 1;
				c.fillStyle = css('--card');
				c.fillRect(x + cell - 5, y + cell - 5, 3, 3);
			}
		});
		c.globalAlpha = 1;
		if (state.at >= 0) {
			c.strokeStyle = css('--ink');
			c.lineWidth = 2;
			c.strokeRect((state.at % columns) * cell - .5, Math.floor(state.at / columns) * cell - .5, cell + .5, cell + .5);
		}
		readout.textContent = state.at >= 0 ? describe(state.at).replace(/\n/g, ' · ') : `${count(pages.length)} pages, ${count(pages.filter(p => p.live_bytes < PAGE / 2).length)} less than half live, ${count(pages.filter(p => p.huge).length)} huge.`;
	}

	const under = e => {
		const box = canvas.getBoundingClientRect();
		const x = Math.floor((e.clientX - box.left) / cell), i = Math.floor((e.clientY - box.top) / cell) * columns + x;
		return x < columns && i < pages.length ? i : -1;
	};
	attributes(canvas, {
		onmousemove: e => (under(e) >= 0 ? tip.show(e, describe(under(e))) : tip.hide()),
		onmouseleave: () => tip.hide(),
		onclick: e => {
			state.at = under(e);
			draw();
		},
		onkeydown: e => {
			const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns}[e.key];
			if (step === undefined)
				return;
			e.preventDefault();
			state.at = state.at < 0 ? 0 : Math.min(pages.length - 1, Math.max(0, state.at + step));
			draw();
		},
	});
	const most = Math.max(1, ...hist.map(or0));
	const density = hist.length > 0 && h('div', {}, h('h3', {style: {fontSize: '.98rem'}}, 'Pages by density'), g('svg', {viewBox: '0 0 300 150', role: 'img', 'aria-label': 'Pages by share of live bytes'},
		hist.map((v, i) => {
			const w = 300 / hist.length, height = or0(v) > 0 ? Math.max(1.5, 112 * Math.sqrt(v / most)) : 0;
			return g('g', tipped(`${i * 10} to ${(i + 1) * 10} % live: ${count(v)} pages`), g('rect', {x: i * w, width: w, y: 0, height: 128, 'fill-opacity': 0}),
				g('rect', {class: `fill c-${i < 5 ? 'bad' : 'accent'}`, x: i * w + 1.5, width: w - 3, y: 126 - height, height, rx: 2, 'fill-opacity': .85}), or0(v) > 0 && g('text', {x: i * w + w / 2, y: 121 - height, 'text-anchor': 'middle', style: {fontSize: '10px'}}, count(v)));
		}), g('line', {class: 'axis', x1: 0, x2: 300, y1: 126, y2: 126}), g('text', {x: 0, y: 144}, 'empty'), g('text', {x: 150, y: 144, 'text-anchor': 'middle'}, 'half live'), g('text', {x: 300, y: 144, 'text-anchor': 'end'}, 'full')));
	const pinners = () => {
		const by = new Map();
		for (const p of pages) {
			if (!p.pinned_by)
				continue;
			const r = by.get(p.pinned_by) || {pages: 0, held: 0, waste: 0};
			r.pages++;
			r.held += or0(p.pinned_bytes);
			r.waste += PAGE - or0(p.live_bytes);
			by.set(p.pinned_by, r);
		}
		return [...by].sort((a, b) => b[1].waste - a[1].waste);
	};
	const makeTable = () => h('div', {}, h('h3', {}, 'Who holds sparse pages'), pinners().length ? table([{title: 'Site'}, {title: 'Function'}, {title: 'Pages', n: 1}, {title: 'Held by', n: 1}, {title: 'Waste', n: 1}],
		pinners().map(([id, r]) => [h('code', {}, id), h('code', {}, byId.has(id) ? siteName(byId.get(id)) : ''), count(r.pages), bytes(r.held), bytes(r.waste)])) : h('p', {class: 'none'}, 'No site.'),
	h('h3', {style: {marginTop: '1rem'}}, 'Pages by density'), table([{title: 'Live'}, {title: 'Pages', n: 1}], hist.map((v, i) => [`${i * 10} to ${(i + 1) * 10} %`, count(v)])));
	redraws.push(draw);
	return section('pages', 'Huge pages', 'One cell for each 2 MiB, by address: the stronger the colour, the more of it is live. A notch marks pages that the kernel keeps small.',
		h('div', {class: 'pair'}, h('div', {}, canvas, readout, legend(TIERS.map(x => [x, x]))), density), makeTable,
		[segments('Colour', [{key: 'tier', label: 'Tier'}, {key: 'pinned', label: 'Held by few', off: !pages.some(p => p.pinned_by)}], 'tier', key => {
			state.by = key;
			draw();
		})]);
}

function classesSection() {
	const all = doc.classes.filter(c => or0(c.span_bytes) > 0).sort((a, b) => b.span_bytes - a.span_bytes);
	if (all.length === 0)
		return null;
	const parts = c => {
		const used = c.class_bytes > 0 ? or0(c.live_objs) * c.class_bytes : c.span_bytes * (1 - or0(c.ext)), asked = Math.min(or0(c.req_bytes), used);
		return {asked, inside: used - asked, outside: Math.max(0, c.span_bytes - used)};
	};
	const chart = h('div', {});
	const draw = () => {
		const width = Math.max(280, chart.clientWidth), narrow = width < 620, left = narrow ? 96 : 150, list = all.slice(0, 18), row = 24;
		const most = Math.max(...list.map(c => c.span_bytes)), x = v => v / most * (width - left - 74), height = list.length * row;
		const svg = g('svg', {viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': 'Size classes by bytes of their pages'});
		list.forEach((c, i) => {
			const p = parts(c), y = i * row + 4;
			svg.append(g('text', {class: 'ink num', x: left - 10, y: y + 12, 'text-anchor': 'end'}, c.class_bytes > 0 ? bytes(c.class_bytes) : 'large'), g('circle', {class: `fill ${tierClass(c.tier)}`, cx: 5, cy: y + 8, r: 4}),
				!narrow && g('text', {x: 15, y: y + 12}, c.tier || ''));
			const group = g('g', tipped(`${c.tier || ''} ${bytes(c.class_bytes)}\n${bytes(p.asked)} asked for, ${bytes(p.inside)} rounding (${percent(c.int, 1)}), ${bytes(p.outside)} in free slots (${percent(c.ext, 1)})`),
				g('rect', {class: `fill ${tierClass(c.tier)}`, x: left, y, width: Math.max(1, x(p.asked)), height: 15, rx: 2}),
				g('rect', {class: 'fill c-other', x: left + x(p.asked), y, width: x(p.inside), height: 15, 'fill-opacity': .8}),
				g('rect', {class: 'fill c-bad', x: left + x(p.asked + p.inside), y, width: x(p.outside), height: 15, 'fill-opacity': .38}));
			svg.append(group, g('text', {class: 'num', x: left + x(c.span_bytes) + 8, y: y + 12}, bytes(c.span_bytes)));
		});
		chart.replaceChildren(svg, all.length > list.length ? h('p', {class: 'readout'}, `${all.length - list.length} smaller classes are in the table.`) : '');
	};
	redraws.push(draw);
	const makeTable = () => table([{title: 'Tier'}, {title: 'Slot', n: 1}, {title: 'Objects', n: 1}, {title: 'Asked for', n: 1}, {title: 'Rounding', n: 1}, {title: 'Free slots', n: 1}, {title: 'Pages', n: 1}],
		all.map(c => [c.tier || '–', c.class_bytes > 0 ? count(c.class_bytes) : 'large', count(c.live_objs), bytes(c.req_bytes), percent(c.int, 1), percent(c.ext, 1), bytes(c.span_bytes)]), {label: 'Size classes'});
	return section('classes', 'Size classes', 'What the pages of each class hold: asked for, rounding, free slots.', [legend([['persistent', 'asked for, in the tier’s colour'], ['other', 'rounding'], ['bad', 'free slots']]), h('div', {style: {height: '.6rem'}}), chart], makeTable);
}

function moreSection() {
	const cards = [];
	const card = (title, ...nodes) => cards.push(h('div', {class: title === 'Tiers' ? 'card wide' : 'card'}, h('h3', {}, title), nodes));
	if (doc.tiers.length)
		card('Tiers', table([{title: 'Tier'}, {title: 'Live', n: 1}, {title: 'Pages', n: 1}, {title: 'Cached', n: 1}, {title: 'Over live', n: 1}, {title: 'Huge', n: 1}, {title: 'Sparse', n: 1}, {title: ''}],
			doc.tiers.map(t => [h('span', {class: 'tier'}, h('span', {class: `dot ${tierClass(t.tier)}`}), t.tier || '–'), bytes(t.live_req), bytes(t.span), bytes(t.cached), ratio(t.blowup_now), percent(t.huge_cov), count(t.sparse_pages), t.verdict || ''])));
	if (doc.suggestions.length)
		card('Suggested rules', h('ul', {class: 'rules'}, doc.suggestions.map(s => h('li', {}, h('code', {}, s.rule), h('p', {}, s.why, known(s.saves_bytes) && `${s.why ? '. ' : ''}Saves about ${bytes(s.saves_bytes)}.`)))));
	if (doc.pools.length)
		card('Pools', table([{title: 'Tier'}, {title: 'Slot', n: 1}, {title: 'Hits', n: 1}, {title: 'Misses', n: 1}, {title: 'Exhausted', n: 1}, {title: 'In use at most', n: 1}],
			doc.pools.map(p => [p.tier || '–', bytes(p.slot_bytes), count(p.hits), count(p.misses), {v: count(p.exhausted), class: or0(p.exhausted) ? 'up' : ''}, known(p.slots) ? `${count(p.high_water)} of ${count(p.slots)}` : count(p.high_water)])));
	if (doc.sizes.length)
		card('Sizes asked for most', table([{title: 'Bytes', n: 1}, {title: 'Requests', n: 1}, {title: 'At once', n: 1}, {title: 'Tier'}], doc.sizes.slice(0, 64).map(s => [count(s.size), count(s.count), count(s.peak_concurrent), s.tier || '–'])));
	if (doc.events.length)
		card('What happened', table([{title: 'Time (UTC)'}, {title: 'Kind'}, {title: ''}], doc.events.map(e => [clock(Number(e.at_unix_ns) / 1e9, true), e.kind || '', e.text || ''])));
	if (doc.mappings.length)
		card('Memory of others', table([{title: 'What'}, {title: 'Resident', n: 1}, {title: 'Mapped', n: 1}], doc.mappings.map(m => [m.name, bytes(m.bytes), bytes(m.mapped_bytes)])));
	return cards.length ? h('section', {id: 'more', 'aria-labelledby': 'more-title'}, h('div', {class: 'head'}, h('div', {}, h('h2', {id: 'more-title'}, 'In detail'))), h('div', {class: 'cols'}, cards)) : null;
}

function blindSection() {
	const c = doc.capture, list = [...doc.blind_spots];
	if (or0(c.seqlock_torn))
		list.push(`${count(c.seqlock_torn)} records of the ledger made no sense`);
	if (or0(c.sites_dropped))
		list.push(`${count(c.sites_dropped)} sites were merged into one for lack of room`);
	if (c.pre_attach)
		list.push('blocks that are older than the account are not in it');
	return h('section', {id: 'blind', 'aria-labelledby': 'blind-title'}, h('div', {class: 'head'}, h('div', {}, h('h2', {id: 'blind-title'}, 'Blind spots'),
		h('p', {class: 'lede'}, list.length ? 'What this account cannot see.' : 'None known.'))), list.length > 0 && h('div', {class: 'card'}, h('ul', {class: 'blind'}, list.map(b => h('li', {}, b)))));
}
