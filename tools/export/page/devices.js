// Memory on devices, and pinned for them: by device and kind, by call site.

function devicesSection() {
	if (doc.gpu.length === 0)
		return null;
	const kind = x => x.memory || x.api || 'unknown';
	const label = x => `${x.dev ?? '–'} ${kind(x)}`;
	const cached = x => (x.sites || []).reduce((a, s) => a + (s.reserved_by ? or0(s.live_bytes) : 0), 0);
	const chart = h('div', {});
	const draw = () => {
		const width = Math.max(280, chart.clientWidth), narrow = width < 620, left = narrow ? 130 : 190, row = 26, list = doc.gpu;
		const most = Math.max(1, ...list.map(x => Math.max(or0(x.peak), or0(x.live_bytes)))), x = v => v / most * (width - left - 84), height = list.length * row;
		const svg = g('svg', {viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': 'Memory by device and kind; the table has the numbers'});
		list.forEach((each, i) => {
			const y = i * row + 4, live = or0(each.live_bytes), kept = Math.min(cached(each), live), peak = Math.max(live, or0(each.peak));
			svg.append(g('text', {class: 'ink', x: left - 10, y: y + 13, 'text-anchor': 'end'}, label(each)),
				g('g', tipped(`device ${label(each)}\n${bytes(live)} live in ${count(each.live_objs)} blocks, ${bytes(peak)} at most${kept ? `\n${bytes(kept)} of it reserved by a framework’s cache` : ''}`),
					g('rect', {class: 'fill c-gpu', x: left, y, width: Math.max(1, x(peak)), height: 16, rx: 2, 'fill-opacity': .18}),
					g('rect', {class: 'fill c-gpu', x: left, y, width: live ? Math.max(1, x(live - kept)) : 0, height: 16, rx: 2}),
					g('rect', {class: 'fill c-other', x: left + x(live - kept), y, width: x(kept), height: 16, 'fill-opacity': .8})),
				g('text', {class: 'num', x: left + x(peak) + 8, y: y + 13}, bytes(live)));
		});
		chart.replaceChildren(svg);
	};
	redraws.push(draw);
	const makeTable = () => {
		const columns = [{title: 'Device'}, {title: 'Kind'}, {title: 'Site'}, {title: 'Function'}, {title: 'Live', n: 1}, {title: 'Blocks', n: 1}, {title: 'Peak', n: 1}, {title: 'Ever', n: 1}, {title: 'Whose'}];
		if (isDiff())
			columns.push({title: 'Change', n: 1});
		const change = s => (isDiff() && known(s.base_live_bytes) ? [signed(or0(s.live_bytes) - s.base_live_bytes, bytes)] : isDiff() ? ['–'] : []);
		const rows = [];
		for (const each of doc.gpu) {
			rows.push({total: true, cells: [String(each.dev ?? '–'), kind(each), h('code', {}, each.api || ''), '', bytes(each.live_bytes), count(each.live_objs), bytes(each.peak), count(each.alloc_objs), '', ...(isDiff() ? [''] : [])]});
			for (const s of [...(each.sites || [])].sort((a, b) => or0(b.live_bytes) - or0(a.live_bytes)).slice(0, 200)) {
				const frame = ownFrame({stack: s.stack ?? null});
				rows.push(['', '', h('code', {}, s.site || ''), h('code', {}, frame ? frameName(frame) : '', place(frame) && ` ${place(frame)}`), bytes(s.live_bytes), count(s.live_objs), bytes(s.peak), count(s.alloc_objs),
					s.reserved_by ? `reserved by the cache of ${s.reserved_by}` : s.tier || '', ...change(s)]);
			}
		}
		const pools = doc.gpu_pools || [];
		return h('div', {}, table(columns, rows, {label: 'Memory on devices'}), pools.length > 0 && h('div', {style: {marginTop: '1.2rem'}}, h('h3', {}, 'What the library’s own pools took of the driver'),
			table([{title: 'Device'}, {title: 'Pool'}, {title: 'Reserved', n: 1}, {title: 'Used', n: 1}, {title: 'Idle', n: 1}, {title: 'Served', n: 1}],
				pools.map(p => [String(p.dev ?? '–'), p.pool || '', bytes(p.reserved_bytes), bytes(p.used_bytes), bytes(p.idle_bytes), known(p.hits) ? `${count(p.hits)} of ${count(or0(p.hits) + or0(p.misses))}` : '']))));
	};
	return section('devices', 'On devices', 'What was asked of the driver and not freed, and the most of it. What a framework keeps in its own cache is all live here; what it uses of it is not known.',
		[legend([['gpu', 'live'], ['other', 'reserved by a framework’s cache'], ['gpu', 'the most there was', 'pale']]), h('div', {style: {height: '.6rem'}}), chart], makeTable);
}
