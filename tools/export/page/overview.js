// Verdict, facts, leak cards, balance.

function verdictNode() {
	const p = doc.process, v = doc.verdict, ended = {running: 'running', clean: 'ended by itself', killed: 'ended without a clean exit'};
	const rate = known(v.growth_bytes_per_h) && v.growth_bytes_per_h > 0;
	const range = (list, f) => (list.length === 2 ? ` [${f(list[0])} to ${f(list[1])}]` : '');
	const title = v.text || (isDiff() ? 'What changed between two moments' : doc.leaks.length ? `${doc.leaks.length} leak${doc.leaks.length > 1 ? 's' : ''} found` : 'What this process holds');
	return h('div', {class: 'verdict'},
		h('div', {class: 'eyebrow'},
			v.outcome && h('span', {class: `pill ${v.outcome}`}, {fine: 'Nothing found', found: 'Leaks found', inconclusive: 'Not decided yet'}[v.outcome]),
			h('span', {}, h('b', {}, p.program || 'process'), p.pid !== null && ` · pid ${p.pid}`),
			p.host && h('span', {}, p.host),
			p.ended && h('span', {}, ended[p.ended], p.ended !== 'clean' && known(p.heartbeat_age_ms) && p.ended === 'killed' ? `, last sign ${span(p.heartbeat_age_ms / 1000)} before` : ''),
			doc.seconds > 0 && h('span', {}, `up ${span(doc.seconds)}`),
			doc.end > 0 && h('time', {datetime: new Date(doc.end * 1000).toISOString()}, clock(doc.end, true))),
		h('h1', {}, title),
		isDiff() && h('p', {}, h('strong', {}, doc.diff.a || 'A'), ' to ', h('strong', {}, doc.diff.b || 'B')),
		rate && h('p', {}, 'Together they grow by ', h('strong', {}, `${bytes(v.growth_bytes_per_h)} an hour`), range(v.growth_ci95, bytes),
			known(v.limit_reached_h) && [', and reach the limit of ', bytes(p.limit_bytes), ' in ', h('strong', {}, span(v.limit_reached_h * 3600)),
				range(v.limit_reached_ci95, x => span(x * 3600))], '.'));
}

function factsNode() {
	const b = doc.balance, v = doc.verdict, base = doc.diff.base;
	const arena = ['live_req', 'internal', 'external', 'cached', 'metadata', 'nonresident'].reduce((a, k) => a + or0(b[k]), 0);
	const facts = [];
	const add = (name, value, note, name2) => facts.push(h('div', {}, h('dt', {}, name), h('dd', {class: name2 || null}, value, note && h('small', {}, note))));
	const change = key => (isDiff() && known(base[key]) && known(b[key]) ? `${signed(b[key] - base[key], bytes)} since A` : null);
	if (known(b.rss_bytes))
		add('Resident', bytes(b.rss_bytes), change('rss_bytes') || (known(doc.process.limit_bytes) && known(b.rss_bytes) ? `${percent(b.rss_bytes / doc.process.limit_bytes)} of the limit` : null));
	add('Live, as requested', bytes(known(b.live_req) ? b.live_req : doc.liveBytes), change('live_req') || `${count(doc.liveObjs)} objects, ${doc.sites.length.toLocaleString('en-US')} sites`);
	if (known(v.growth_bytes_per_h))
		add('Growing by', `${bytes(v.growth_bytes_per_h)}/h`, v.growing ? `${v.growing} site${v.growing > 1 ? 's' : ''}` : 'no site', v.growth_bytes_per_h > 0 ? 'up' : null);
	if (known(b.rss_bytes) && or0(b.live_req) > 0 && arena < 100 * b.live_req)
		add('Heap over live', ratio(arena / b.live_req), `${bytes(arena - b.live_req)} more than asked for`);
	if (doc.hugepages.resident_bytes > 0 && known(doc.hugepages.huge_bytes))
		add('On huge pages', percent(doc.hugepages.huge_bytes / doc.hugepages.resident_bytes), `of ${bytes(doc.hugepages.resident_bytes)}`);
	if (doc.gpu.length)
		add('On devices', bytes(doc.gpu.reduce((a, x) => a + or0(x.live_bytes), 0)), `peak ${bytes(doc.gpu.reduce((a, x) => a + or0(x.peak), 0))}`);
	return h('dl', {class: 'facts'}, facts);
}

// The interval of a slope on a common scale: a bar for the interval, a tick for the estimate.
function intervalNode(leak, most) {
	if (leak.ci95.length !== 2 || !known(leak.slope_bytes_per_h))
		return null;
	const x = v => 2 + 96 * Math.max(0, v) / most;
	return g('svg', {viewBox: '0 0 100 12', preserveAspectRatio: 'none', height: 12, role: 'img',
		'aria-label': `slope between ${bytes(leak.ci95[0])} and ${bytes(leak.ci95[1])} an hour`},
		g('line', {class: 'axis', x1: 2, x2: 98, y1: 6, y2: 6, 'vector-effect': 'non-scaling-stroke'}),
		g('rect', {class: 'fill c-bad', x: x(leak.ci95[0]), width: Math.max(.6, x(leak.ci95[1]) - x(leak.ci95[0])), y: 2.5, height: 7, 'fill-opacity': .35}),
		g('rect', {class: 'fill c-bad', x: x(leak.slope_bytes_per_h) - .4, width: .8, y: 0, height: 12}));
}

function cohortsNode(site) {
	const list = (site && or0(site.live_objs) > 0 ? site.cohorts : []).map(or0);
	/* The first holds all that are older: it would make the others flat. */
	const most = Math.max(...list.slice(1), 0) || Math.max(...list, 0);
	const tall = v => Math.max(1, 29 * Math.min(1, v / most));
	if (most <= 0)
		return null;
	return h('div', {}, g('svg', {viewBox: `0 0 ${list.length * 4} 30`, preserveAspectRatio: 'none', height: 30, role: 'img', 'aria-label': 'objects still live, by window of birth, oldest first'},
		list.map((v, i) => v > 0 && g('rect', {class: 'fill c-bad', x: i * 4, width: 3, y: 30 - tall(v), height: tall(v), 'fill-opacity': i ? .75 : .35}))),
		h('div', {class: 'where'}, 'still live, by time of birth: all older ones left, newest right'));
}

function leakNode(leak, most) {
	const site = byId.get(leak.site), own = ownFrame(site);
	const facts = [['Live', bytes(leak.live_bytes)], ['Objects', count(leak.live_objs)],
		known(leak.per_session) ? ['Per session', digits(Number(leak.per_session))] : known(leak.per_request) ? ['Per request', digits(Number(leak.per_request))]
			: ['Confidence', known(leak.confidence) ? String(leak.confidence) : '–']];
	const rate = leak.class === 'growing' ? ['+', bytes(leak.slope_bytes_per_h), h('small', {}, 'an hour', leak.ci95.length === 2 ? `, 95 % within ${bytes(leak.ci95[0])} to ${bytes(leak.ci95[1])}` : '')]
		: [bytes(leak.direct), h('small', {}, `${leak.class === 'exit' ? 'live after the end' : 'unreachable'}${or0(leak.indirect) ? `, and ${bytes(leak.indirect)} behind it` : ''}`)];
	return h('article', {class: `leak${leak.acknowledged ? ' quiet' : ''}`},
		h('header', {}, h('b', {}, leak.class === 'growing' ? 'growing' : leak.class === 'exit' ? 'left at exit' : 'unreachable'),
			h('span', {}, leak.class !== 'growing' ? '' : or0(leak.scan.passes) > 1 ? 'still reachable' : 'reachable or not'), site && site.tier && h('span', {}, h('span', {class: `dot ${tierClass(site.tier)}`}), site.tier),
			h('code', {}, leak.site), leak.acknowledged && h('span', {}, `acknowledged up to ${bytes(leak.cap_bytes)}`)),
		h('div', {}, h('h3', {}, site ? siteName(site) : leak.site), place(own) && h('div', {class: 'where'}, place(own))),
		h('div', {class: 'rate'}, rate),
		leak.class === 'growing' && intervalNode(leak, most), cohortsNode(site),
		h('dl', {}, facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v)))),
		leak.evidence.length > 0 && h('ul', {class: 'why'}, leak.evidence.map(e => h('li', {}, e))),
		leak.hint && h('p', {class: 'hint'}, leak.hint),
		leak.holders.length > 0 && h('details', {}, h('summary', {}, 'Who holds it'), h('div', {class: 'stack'}, leak.holders.map((x, i) => h('div', {}, '\u00a0'.repeat(i * 2), i ? '→ ' : '', x)))),
		h('details', {}, h('summary', {}, 'Stack'), stackNode(site)));
}

// That no scan ran, that two found nothing and that they found something must not read alike.
function scanNode() {
	const s = doc.scan;
	if (!s || !s.state)
		return null;
	const found = {never: 'No live scan ran', once: 'One pass of a live scan ran, and it takes two', nothing: 'The live scan found nothing unreachable',
		found: `The live scan found ${count(s.found_objs)} objects unreachable, ${bytes(s.found_bytes)}`}[s.state];
	const ago = Math.max(0, doc.end - Number(s.at_unix_ns) / 1e9);
	const pass = s.state === 'never' ? [] : [`${count(s.passes)} ${s.passes === 1 ? 'pass' : 'passes'}, the last ${span(ago)} ${doc.process.ended === 'running' ? 'before this report' : 'before the end'}`,
		known(s.read_bytes) && `${bytes(s.read_bytes)} read`,
		or0(s.threads_stopped) > 0 ? `${count(s.threads_stopped)} threads stood still for ${digits(s.stopped_us / 1000)} ms` : 'no other thread to stop'].filter(Boolean);
	return h('p', {class: 'lede', id: 'scan'}, h('strong', {}, found), pass.length > 0 && `: ${pass.join(', ')}`, '.', s.why && ` ${s.state === 'never' ? 'Because' : 'There is no newer one'}: ${s.why}.`);
}

function leaksSection() {
	const most = Math.max(1, ...doc.leaks.map(l => (l.ci95.length === 2 ? l.ci95[1] : or0(l.slope_bytes_per_h))));
	const shown = doc.leaks.slice(0, 60);
	return h('section', {id: 'leaks', 'aria-labelledby': 'leaks-title'},
		h('div', {class: 'head'}, h('div', {}, h('h2', {id: 'leaks-title'}, 'Leaks'),
			h('p', {class: 'lede'}, doc.leaks.length ? 'Sites whose objects outlive their peers, window after window, and blocks that nothing points to.'
				: doc.verdict.outcome === 'inconclusive' ? 'Too little has been seen to decide.' : doc.verdict.outcome ? 'No site was judged to leak.' : 'This report does not judge leaks.'), scanNode())),
		doc.leaks.length > 0 && h('div', {class: 'leaks'}, shown.map(l => leakNode(l, most))),
		doc.leaks.length > shown.length && h('p', {class: 'none'}, `and ${doc.leaks.length - shown.length} more, in the list of sites`),
		doc.watch.length > 0 && h('details', {style: {marginTop: '.8rem'}}, h('summary', {}, `Watched, not judged a leak: ${doc.watch.length}`),
			h('div', {class: 'card', style: {marginTop: '.5rem'}}, table([{title: 'Site'}, {title: 'Function'}, {title: 'Why it is not one yet'}],
				doc.watch.map(w => [h('code', {}, w.site), h('code', {}, byId.has(w.site) ? siteName(byId.get(w.site)) : ''), w.note])))));
}

// Each part begins where the ones above it end, and the last bar is what they come to.
function balanceSection() {
	const b = doc.balance, base = doc.diff.base;
	const chart = h('div', {});
	const rows = PARTS.filter(([key]) => known(b[key]) && (b[key] !== 0 || key === 'live_req' || key === 'residual'));
	// What the heap is, what it costs on top, everything else.
	const color = {live_req: 'accent', internal: 'cost', external: 'cost', cached: 'cost', metadata: 'cost', nonresident: 'cost', residual: 'bad'};
	const draw = () => {
		const width = Math.max(280, chart.clientWidth), narrow = width < 620;
		const left = narrow ? 0 : 190, right = isDiff() ? 170 : 92, step = narrow ? 42 : 30, bar = 16;
		const height = (rows.length + 1) * step + 22;
		let at = 0, high = or0(b.rss_bytes), low = 0;
		for (const [key] of rows) {
			at += b[key];
			high = Math.max(high, at);
			low = Math.min(low, at);
		}
		const x = v => left + (v - low) / (high - low || 1) * (width - left - right);
		const svg = g('svg', {viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': 'Parts of resident memory; the table has the numbers'});
		for (const t of byteTicks(high, narrow ? 3 : 6)) {
			svg.append(g('line', {class: 'grid', x1: x(t), x2: x(t), y1: 0, y2: height - 20}),
				g('text', {x: x(t), y: height - 5, 'text-anchor': t === 0 ? 'start' : 'middle'}, bytes(t)));
		}
		at = 0;
		const line = (i, label, from, to, name, value, before) => {
			const y = i * step + (narrow ? 19 : 5);
			svg.append(g('text', {class: 'ink', x: narrow ? 0 : left - 12, y: narrow ? y - 5 : y + 12.5, 'text-anchor': narrow ? 'start' : 'end'}, label),
				g('rect', {class: `fill c-${name}`, x: x(Math.min(from, to)), width: Math.max(1.5, Math.abs(x(to) - x(from))), y, height: bar, rx: 2.5, ...tipped(`${label}\n${bytes(value)}, ${percent(value / (b.rss_bytes || 1), 1)} of resident`)}),
				g('text', {class: 'ink num', x: width - (isDiff() ? 78 : 0), y: y + 12.5, 'text-anchor': 'end'}, bytes(value)));
			if (before !== null && known(before)) {
				const d = value - before;
				svg.append(g('text', {class: 'num', x: width, y: y + 12.5, 'text-anchor': 'end', style: {fill: d > 0 ? 'var(--bad)' : d < 0 ? 'var(--less)' : ''}}, signed(d, bytes)));
			}
		};
		rows.forEach(([key, label], i) => {
			line(i, label, at, at + b[key], color[key] || 'other', b[key], isDiff() ? base[key] : null);
			at += b[key];
			svg.append(g('line', {class: 'axis', x1: x(at), x2: x(at), y1: i * step + (narrow ? 35 : 21), y2: (i + 1) * step + (narrow ? 19 : 5), 'stroke-dasharray': '2 2'}));
		});
		line(rows.length, 'Resident', 0, or0(b.rss_bytes), 'rss', or0(b.rss_bytes), isDiff() ? base.rss_bytes : null);
		chart.replaceChildren(rows.length ? svg : h('p', {class: 'none'}, 'The parts of resident memory are not known.'));
	};
	redraws.push(draw);
	const makeTable = () => {
		const columns = [{title: 'Part'}, {title: 'Bytes', n: 1}, {title: '', n: 1}, {title: 'Of resident', n: 1}];
		if (isDiff())
			columns.push({title: 'In A', n: 1}, {title: 'Change', n: 1});
		const cells = (label, value, before) => [label, count(value), bytes(value), percent(value / (b.rss_bytes || 1), 1), ...(isDiff() ? [bytes(before), {v: signed(value - before, bytes), class: value > before ? 'up' : 'down'}] : [])];
		return h('div', {}, table(columns, [...rows.map(([key, label]) => cells(label, b[key], base[key])), {total: true, cells: cells('Resident', b.rss_bytes, base.rss_bytes)}]),
			doc.mappings.length > 0 && h('div', {style: {marginTop: '1.2rem'}}, h('h3', {}, 'What the other parts consist of'), table([{title: 'What'}, {title: 'Part'}, {title: 'Resident', n: 1}, {title: 'Mapped', n: 1}, {title: 'Number', n: 1}],
				doc.mappings.map(m => [m.name, m.part || 'outside', bytes(m.bytes), bytes(m.mapped_bytes), count(m.count)]))));
	};
	const residual = known(b.residual) && b.rss_bytes > 0 ? ` ${percent(Math.abs(b.residual) / b.rss_bytes, 2)} remains unexplained.` : '';
	return section('balance', 'Where resident memory goes', `Every part up to what the kernel counts.${residual}`, [chart, rows.length > 0 && h('div', {style: {marginTop: '.5rem'}}, legend([['accent', 'asked for'], ['cost', 'what the heap adds'], ['other', 'not of the heap'], ['bad', 'unexplained']]))], rows.length > 0 && makeTable);
}
