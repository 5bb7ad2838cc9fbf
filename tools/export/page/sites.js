// The list of sites, ages by site, lifetimes by tier.

const SITE_COLUMNS = [
	{key: 'name', title: 'Site', of: s => siteName(s), text: true},
	{key: 'tier', title: 'Tier', of: s => s.tier || '', text: true},
	{key: 'live', title: 'Live', of: s => or0(s.live_bytes), show: s => bytes(s.live_bytes)},
	{key: 'delta', title: 'Since A', diff: true, of: s => or0(s.live_bytes) - or0(s.base_live_bytes), show: s => signed(or0(s.live_bytes) - or0(s.base_live_bytes), bytes)},
	{key: 'objs', title: 'Objects', of: s => or0(s.live_objs), show: s => count(s.live_objs)},
	{key: 'size', title: 'Mean size', of: s => (s.live_objs > 0 ? s.live_bytes / s.live_objs : 0), show: s => (s.live_objs > 0 ? bytes(s.live_bytes / s.live_objs) : '–')},
	{key: 'alloc', title: 'Allocated', of: s => or0(s.alloc_objs), show: s => count(s.alloc_objs)},
	{key: 'freed', title: 'Freed', of: s => (or0(s.alloc_objs) > 0 ? or0(s.free_objs) / s.alloc_objs : 0), show: s => (or0(s.alloc_objs) > 0 ? percent(or0(s.free_objs) / s.alloc_objs, 0) : '–')},
	{key: 'growth', title: 'Growth/h', of: s => or0(s.growth_bytes_per_h), show: s => (or0(s.growth_bytes_per_h) ? bytes(s.growth_bytes_per_h) : '–')},
	{key: 'pinned', title: 'Pins', of: s => or0(s.frag_pinned_bytes), show: s => (or0(s.frag_pinned_bytes) ? bytes(s.frag_pinned_bytes) : '–')},
];

function sitesSection() {
	const columns = SITE_COLUMNS.filter(c => !c.diff || isDiff());
	const state = {sort: isDiff() ? 'delta' : 'live', down: true, find: '', shown: 50, open: new Set()};
	const body = h('tbody', {}), note = h('p', {class: 'readout', 'aria-live': 'polite'});
	const more = h('button', {class: 'plain', type: 'button', onclick: () => {
		state.shown += 200;
		draw();
	}}, 'Show 200 more');
	const heads = columns.map(c => h('th', {scope: 'col', class: c.text ? null : 'n'}, h('button', {type: 'button', onclick: () => {
		state.down = state.sort === c.key ? !state.down : !c.text;
		state.sort = c.key;
		draw();
	}}, c.title)));
	const search = h('input', {class: 'search', id: 'find-site', type: 'search', placeholder: 'Function, file or site', 'aria-label': 'Filter sites', oninput: e => {
		state.find = e.target.value.trim().toLowerCase();
		state.shown = 50;
		draw();
	}});
	const text = new Map();
	const textOf = s => {
		if (!text.has(s.id))
			text.set(s.id, `${s.id} ${s.tag || ''} ${s.tier || ''} ${framesOf(s).map(f => `${frameName(f)} ${f.file || ''}`).join(' ')}`.toLowerCase());
		return text.get(s.id);
	};

	function rowsOf(s) {
		const open = state.open.has(s.id), f = ownFrame(s);
		const cells = columns.map(c => {
			if (c.key === 'name')
				return h('td', {class: 'name'}, h('button', {type: 'button', 'aria-expanded': String(open), onclick: () => {
					if (!state.open.delete(s.id))
						state.open.add(s.id);
					draw();
				}}, siteName(s)), h('span', {class: 'sub'}, [s.id, place(f), s.tag && `tag ${s.tag}`].filter(Boolean).join(' · ')));
			if (c.key === 'tier')
				return h('td', {class: 'tier'}, s.tier && h('span', {class: `dot ${tierClass(s.tier)}`}), s.tier || '–');
			const way = c.key === 'delta' ? (c.of(s) > 0 ? ' up' : c.of(s) < 0 ? ' down' : '') : '';
			return h('td', {class: `n${way}`}, c.show(s));
		});
		return [h('tr', {}, cells), open && h('tr', {}, h('td', {colspan: columns.length}, stackNode(s)))];
	}

	function draw() {
		const column = columns.find(c => c.key === state.sort), sign = state.down ? -1 : 1;
		const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
		const measure = column.key === 'delta' ? s => Math.abs(column.of(s)) : column.of;
		const list = doc.sites.filter(s => !state.find || textOf(s).includes(state.find))
			.map(s => [measure(s), s]).sort((a, b) => sign * order(a[0], b[0]) || order(a[1].id, b[1].id)).map(p => p[1]);
		columns.forEach((c, i) => (c.key === state.sort ? heads[i].setAttribute('aria-sort', state.down ? 'descending' : 'ascending') : heads[i].removeAttribute('aria-sort')));
		body.replaceChildren(...list.slice(0, state.shown).flatMap(rowsOf).filter(Boolean));
		more.hidden = list.length <= state.shown;
		const sum = list.reduce((a, s) => a + or0(s.live_bytes), 0);
		note.textContent = `${Math.min(state.shown, list.length).toLocaleString('en-US')} of ${list.length.toLocaleString('en-US')} sites; all ${state.find ? 'that match ' : ''}hold ${bytes(sum)}.`;
	}
	draw();
	return h('section', {id: 'sites', 'aria-labelledby': 'sites-title'},
		h('div', {class: 'head'}, h('div', {}, h('h2', {id: 'sites-title'}, 'Sites'), h('p', {class: 'lede'}, 'Every place that allocates. Open one for its stack.')), h('div', {class: 'controls'}, search)),
		h('div', {class: 'card'}, h('div', {class: 'scroll', style: {maxHeight: 'none'}}, h('table', {}, h('thead', {}, h('tr', {}, heads)), body)), note, more));
}

const ageName = i => (i === 0 ? 'below 1 s' : `${age(2 ** (i - 1))} to ${age(2 ** i)}`);
function age(s) {
	return s < 60 ? `${s} s` : s < 3600 ? `${digits(s / 60)} min` : s < 86400 ? `${digits(s / 3600)} h` : `${digits(s / 86400)} d`;
}
const shortAge = s => (s < 120 ? `${s < 10 ? s.toFixed(1) : Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${(s / 86400).toFixed(1)} d`);
const ageTick = i => (i === 0 ? '<1 s' : age(2 ** (i - 1)).replace(/\.\d+/, ''));

// Rows are sites, columns birth: what leaks is a row that never fades.
function heatSection() {
	const cohorts = doc.sites.some(s => s.cohorts.length > 1), ages = doc.sites.some(s => s.age_hist_log2s.length > 1);
	const state = {by: cohorts ? 'cohorts' : 'age_hist_log2s', order: 'live'};
	const chart = h('div', {}), controls = [];
	const orders = {live: s => or0(s.live_bytes), growth: s => or0(s.growth_bytes) + or0(s.unreachable_bytes), objects: s => or0(s.live_objs)};
	const sitesOf = () => [...doc.sites].filter(s => s[state.by].some(v => or0(v) > 0) && orders[state.order](s) > 0)
		.sort((a, b) => orders[state.order](b) - orders[state.order](a) || (a.id < b.id ? -1 : 1)).slice(0, 24);
	const columnName = (i, n) => (state.by === 'cohorts' ? (i === 0 ? 'older' : `born ${shortAge((n - 1 - i) * cohortSeconds(n))} ago`) : ageName(i));
	// The first cohort holds everything older, too.
	const cohortSeconds = n => (or0(doc.capture.window_ms) > 0 ? doc.capture.window_ms / 1000 : doc.seconds / n);

	function draw() {
		const list = sitesOf(), width = Math.max(280, chart.clientWidth), narrow = width < 620;
		if (list.length === 0) {
			chart.replaceChildren(h('p', {class: 'none'}, 'The ages of live objects are not known.'));
			return;
		}
		const columns = Math.max(...list.map(s => s[state.by].length));
		const left = narrow ? 0 : 270, row = narrow ? 34 : 21, top = narrow ? 14 : 0;
		const w = Math.min(90, (width - left) / columns), height = list.length * row + 24;
		const svg = g('svg', {viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': 'Live objects by site and time of birth; the table has the numbers'});
		list.forEach((s, i) => {
			const values = s[state.by].map(or0), most = Math.max(...values);
			const room = narrow ? 60 : 38, name = siteName(s);
			const leak = or0(s.growth_bytes) > 0 || or0(s.unreachable_bytes) > 0;
			svg.append(g('text', {class: 'mono', x: narrow ? 0 : left - 12, y: i * row + (narrow ? 11 : 14.5), 'text-anchor': narrow ? 'start' : 'end', style: leak ? {fill: 'var(--bad)', fontWeight: 600} : {}},
				name.length > room ? `${name.slice(0, room - 1)}…` : name));
			for (let k = 0; k < columns; k++) {
				const v = values[k] || 0;
				svg.append(g('rect', {x: left + k * w + .5, y: i * row + top + 1, width: Math.max(1, w - 1.5), height: row - top - 3, rx: 2,
					style: {fill: v > 0 ? `rgba(${leak ? (document.documentElement.dataset.theme === 'dark' ? '240, 127, 112' : '194, 59, 46') : css('--heat')}, ${(.14 + .86 * Math.sqrt(v / most)).toFixed(3)})` : 'var(--sunk)'},
					...tipped(`${name}\n${columnName(k, columns)}: ${count(v)} objects live`)}));
			}
		});
		const every = Math.max(1, Math.ceil(columns / (narrow ? 4 : 9)));
		for (let k = 0; k < columns; k += every)
			svg.append(g('text', {x: left + k * w, y: height - 6}, state.by === 'cohorts' ? (k === 0 ? 'older' : `−${shortAge((columns - 1 - k) * cohortSeconds(columns))}`) : ageTick(k)));
		chart.replaceChildren(svg);
	}
	const change = key => value => {
		state[key] = value;
		draw();
		node.renewTable();
	};
	if (cohorts && ages)
		controls.push(segments('Columns', [{key: 'cohorts', label: 'By birth'}, {key: 'age_hist_log2s', label: 'By age'}], state.by, change('by')));
	controls.push(segments('Order', [{key: 'live', label: 'Largest'}, {key: 'growth', label: 'Growing', off: !doc.sites.some(s => orders.growth(s) > 0)}, {key: 'objects', label: 'Most objects'}], 'live', change('order')));
	const makeTable = () => {
		const list = sitesOf(), columns = Math.max(0, ...list.map(s => s[state.by].length));
		return table([{title: 'Site'}, ...Array.from({length: columns}, (_, k) => ({title: columnName(k, columns), n: 1}))],
			list.map(s => [h('code', {}, siteName(s)), ...Array.from({length: columns}, (_, k) => count(or0(s[state.by][k])))]), {label: 'Live objects by site and birth'});
	};
	redraws.push(draw);
	const node = section('ages', 'How old live objects are', 'Darkness is the share of a site’s own objects. Steady state fades to the left; a leak keeps something of every time.', chart, makeTable, controls);
	return node;
}

// What a tier should not hold: things that die at once, or never.
const MISFIT = {persistent: i => i < 11, session: i => i === 0, temporary: i => i > 5};
const MISFIT_TEXT = {persistent: 'freed within 17 min of birth', session: 'gone within 1 s', temporary: 'lived longer than 32 s'};

function lifetimesSection() {
	const tiers = doc.tiers.filter(t => t.tier && t.life_hist_log2s.some(v => or0(v) > 0));
	if (tiers.length === 0)
		return null;
	const parts = tiers.map(t => {
		const values = t.life_hist_log2s.map(or0), total = values.reduce((a, v) => a + v, 0);
		const wrong = values.reduce((a, v, i) => a + (MISFIT[t.tier](i) ? v : 0), 0);
		const most = Math.max(...values), w = 300 / values.length;
		const svg = g('svg', {viewBox: '0 0 300 130', role: 'img', 'aria-label': `Lifetimes in tier ${t.tier}`},
			g('line', {class: 'axis', x1: 0, x2: 300, y1: 110, y2: 110}),
			values.map((v, i) => {
				// A cube root keeps the rare ones visible beside the many.
				const height = v > 0 ? Math.max(1.5, 104 * Math.cbrt(v / most)) : 0;
				return g('g', tipped(`${ageName(i)}: ${count(v)} objects${MISFIT[t.tier](i) ? '\nnot what this tier is for' : ''}`),
					g('rect', {x: i * w, y: 0, width: w, height: 112, 'fill-opacity': 0}),
					g('rect', {class: `fill ${MISFIT[t.tier](i) ? 'c-bad' : tierClass(t.tier)}`, x: i * w + 1, width: w - 2, y: 110 - height, height, rx: 1.5}));
			}),
			[0, 4, 7, 10, 13].filter(i => i < values.length).map(i => g('text', {x: i * w + 1, y: 125, style: {fontSize: '10.5px'}}, ageTick(i))));
		return h('div', {}, h('h3', {}, h('span', {class: `dot ${tierClass(t.tier)}`}), t.tier),
			h('p', {class: 'lede'}, `${percent(wrong / total, wrong / total < .1 ? 1 : 0)} ${MISFIT_TEXT[t.tier]}`), svg);
	});
	const length = Math.max(...tiers.map(t => t.life_hist_log2s.length));
	const makeTable = () => table([{title: 'Lifetime'}, ...tiers.map(t => ({title: t.tier, n: 1}))],
		Array.from({length}, (_, i) => [ageName(i), ...tiers.map(t => count(t.life_hist_log2s[i]))]), {label: 'Lifetimes by tier'});
	return section('lifetimes', 'How long objects lived', 'Freed objects by lifetime, cube-root scale. Red is mass that a tier is not meant for.', h('div', {class: 'multiples'}, parts), makeTable);
}
