// Memory over time: tiers stacked, resident and limit as lines, a brush that measures a window.

const SERIES_NAMES = {rss: 'Resident', live: 'Live', limit: 'Limit', 'gpu.used': 'On devices'};
const LINES = {rss: 'rss', live: 'accent', limit: 'bad', 'gpu.used': 'gpu'};
const seriesName = key => SERIES_NAMES[key] || key.replace(/^tier\.(.*)\.live$/, '$1');

function timelineSection() {
	const {t, series} = doc.timeline;
	const stacked = TIERS.map(x => `tier.${x}.live`).filter(k => series[k]);
	const lines = ['rss', 'limit', 'gpu.used'].filter(k => series[k]).concat(stacked.length ? [] : ['live'].filter(k => series[k]));
	const last = t.length - 1;
	const state = {from: 0, to: last, brush: null, hidden: new Set()};
	// A device or a limit far above what is resident would flatten the rest.
	const resident = Math.max(1, ...(series.rss || series.live || [1]).map(or0));
	for (const [k, times] of [['gpu.used', 1.3], ['limit', 2]])
		if (series[k] && Math.max(...series[k].map(or0)) > times * resident)
			state.hidden.add(k);
	const chart = h('div', {tabindex: 0, role: 'application', 'aria-roledescription': 'timeline', 'aria-label': 'Memory over time. Arrow keys move, with Shift they select, Enter zooms, Escape goes back.', style: {touchAction: 'pan-y'}});
	const readout = h('p', {class: 'readout', 'aria-live': 'polite'});
	const reset = h('button', {class: 'plain', type: 'button', hidden: true, onclick: () => zoom(0, last)}, 'Whole time');
	const zoomIn = h('button', {class: 'plain', type: 'button', hidden: true, onclick: () => state.brush && zoom(...ends())}, 'Zoom to selection');
	const ends = () => [Math.min(...state.brush), Math.max(...state.brush)];
	let scale = null;

	function zoom(from, to) {
		if (to - from < 2)
			return;
		Object.assign(state, {from, to, brush: null});
		draw();
	}

	function say() {
		reset.hidden = state.from === 0 && state.to === last;
		zoomIn.hidden = !state.brush || ends()[1] - ends()[0] < 2;
		if (!state.brush) {
			readout.replaceChildren('Drag to measure a window of time.');
			return;
		}
		const [a, b] = ends();
		if (a === b) {
			readout.replaceChildren(h('b', {}, clock(t[a], true)), ': ', [...lines, ...stacked].map(k => `${seriesName(k)} ${bytes(series[k][a])}`).join(', '));
			return;
		}
		const hours = (t[b] - t[a]) / 3600;
		const parts = [...lines.filter(k => k !== 'limit'), ...stacked].filter(k => known(series[k][a]) && known(series[k][b])).map(k => {
			const d = series[k][b] - series[k][a];
			return [k === lines[0] ? '' : ' · ', seriesName(k), ' ', h('b', {}, signed(d, bytes)), ` (${signed(d / hours, bytes)}/h)`];
		});
		readout.replaceChildren(h('b', {}, `${clock(t[a])} to ${clock(t[b])}`), `, ${span(t[b] - t[a])}: `, ...parts.flat(2));
	}

	function areas(x, y) {
		const nodes = [];
		let below = new Array(t.length).fill(0);
		for (const k of stacked) {
			if (state.hidden.has(k))
				continue;
			const above = below.map((v, i) => v + or0(series[k][i]));
			let d = '';
			for (let i = state.from; i <= state.to; i++)
				d += `${d ? 'L' : 'M'}${x(t[i]).toFixed(1)} ${y(above[i]).toFixed(1)}`;
			for (let i = state.to; i >= state.from; i--)
				d += `L${x(t[i]).toFixed(1)} ${y(below[i]).toFixed(1)}`;
			nodes.push(g('path', {class: `fill ${tierClass(seriesName(k))}`, d: `${d}Z`, 'fill-opacity': .82}));
			below = above;
		}
		return nodes;
	}

	function linePath(k, x, y) {
		let d = '', pen = false;
		for (let i = state.from; i <= state.to; i++) {
			if (!known(series[k][i])) {
				pen = false;
				continue;
			}
			d += `${pen ? 'L' : 'M'}${x(t[i]).toFixed(1)} ${y(series[k][i]).toFixed(1)}`;
			pen = true;
		}
		const name = LINES[k] || 'rss';
		return g('path', {class: `stroke c-${name}`, d, 'stroke-width': k === 'rss' || k === 'live' ? 1.8 : 1.4, 'stroke-dasharray': k === 'limit' ? '5 4' : k === 'gpu.used' ? '1.5 3' : null, 'stroke-linecap': 'round', 'stroke-linejoin': 'round'});
	}

	function timeTicks(x, width) {
		const seconds = t[state.to] - t[state.from], want = seconds / Math.max(2, width / 110);
		const step = [1, 5, 10, 30, 60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].find(s => s >= want) || 2592000;
		const nodes = [];
		for (let v = Math.ceil(t[state.from] / step) * step; v <= t[state.to]; v += step) {
			const d = new Date(v * 1000);
			const text = step < 60 ? `${clock(v)}:${pad(d.getUTCSeconds())}` : step >= 86400 || (v % 86400 === 0) ? `${d.getUTCMonth() + 1}/${d.getUTCDate()}` : clock(v);
			nodes.push([x(v), text]);
		}
		return nodes;
	}

	function draw() {
		if (t.length < 2)
			return;
		const width = Math.max(280, chart.clientWidth), height = width < 620 ? 230 : 300, left = 62, bottom = 26, top = 10;
		let high = 1;
		for (let i = state.from; i <= state.to; i++) {
			high = Math.max(high, stacked.reduce((a, k) => a + (state.hidden.has(k) ? 0 : or0(series[k][i])), 0));
			for (const k of lines)
				if (!state.hidden.has(k))
					high = Math.max(high, or0(series[k][i]));
		}
		high *= 1.04;
		const x = v => left + (v - t[state.from]) / (t[state.to] - t[state.from]) * (width - left - 6);
		const y = v => top + (1 - v / high) * (height - top - bottom);
		scale = {left, width, at: px => {
			const want = t[state.from] + (px - left) / (width - left - 6) * (t[state.to] - t[state.from]);
			let i = state.from;
			while (i < state.to && Math.abs(t[i + 1] - want) <= Math.abs(t[i] - want))
				i++;
			return i;
		}};
		const svg = g('svg', {viewBox: `0 0 ${width} ${height}`, height, 'aria-hidden': 'true'});
		for (const v of byteTicks(high, 5))
			svg.append(g('line', {class: v ? 'grid' : 'axis', x1: left, x2: width - 6, y1: y(v), y2: y(v)}), g('text', {class: 'num', x: left - 8, y: y(v) + 4, 'text-anchor': 'end'}, bytes(v)));
		for (const [px, text] of timeTicks(x, width - left))
			svg.append(g('line', {class: 'axis', x1: px, x2: px, y1: height - bottom, y2: height - bottom + 4}), g('text', {class: 'num', x: px, y: height - 8, 'text-anchor': px > width - 30 ? 'end' : 'middle'}, text));
		fill(svg, areas(x, y));
		fill(svg, lines.filter(k => !state.hidden.has(k)).map(k => linePath(k, x, y)));
		for (const e of doc.events) {
			const at = Number(e.at_unix_ns) / 1e9;
			if (at >= t[state.from] && at <= t[state.to])
				svg.append(g('g', tipped(`${clock(at, true)}\n${e.kind || ''} ${e.text || ''}`),
					g('line', {class: 'axis', x1: x(at), x2: x(at), y1: top, y2: height - bottom, 'stroke-dasharray': '2 3'}),
					g('path', {class: 'fill c-warn', d: `M${x(at) - 5} ${top - 8}h10l-5 8z`})));
		}
		if (state.brush) {
			const [a, b] = ends();
			svg.append(g('rect', {class: 'fill c-accent', x: x(t[a]), width: Math.max(1, x(t[b]) - x(t[a])), y: top, height: height - top - bottom, 'fill-opacity': a === b ? .8 : .16}),
				g('line', {class: 'stroke c-accent', x1: x(t[a]), x2: x(t[a]), y1: top, y2: height - bottom}), g('line', {class: 'stroke c-accent', x1: x(t[b]), x2: x(t[b]), y1: top, y2: height - bottom}));
		}
		chart.replaceChildren(svg);
		say();
	}

	let dragging = false;
	const at = e => scale && scale.at((e.clientX - chart.getBoundingClientRect().left) * scale.width / chart.clientWidth);
	attributes(chart, {
		onpointerdown: e => {
			if (!scale || e.button)
				return;
			dragging = true;
			chart.setPointerCapture(e.pointerId);
			state.brush = [at(e), at(e)];
			draw();
		},
		onpointermove: e => {
			if (dragging && state.brush[1] !== at(e)) {
				state.brush[1] = at(e);
				draw();
			}
		},
		onpointerup: () => (dragging = false),
		onpointercancel: () => (dragging = false),
		ondblclick: () => (state.from || state.to !== last ? zoom(0, last) : null),
		onkeydown: e => {
			const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[e.key];
			const limit = v => Math.min(state.to, Math.max(state.from, v));
			if (step) {
				const [a, b] = state.brush || [state.to, state.to];
				const next = limit((state.brush ? b : state.to + (step < 0 ? 1 : 0)) + step);
				state.brush = e.shiftKey ? [a, next] : [next, next];
			} else if (e.key === 'Enter' && state.brush) {
				zoom(...ends());
			} else if (e.key === 'Escape') {
				if (state.brush)
					state.brush = null;
				else
					zoom(0, last);
			} else {
				return;
			}
			e.preventDefault();
			draw();
		},
	});
	const toggles = h('div', {class: 'legend', role: 'group', 'aria-label': 'Series'}, [...stacked, ...lines].map(k => {
		const name = stacked.includes(k) ? seriesName(k) : LINES[k] || 'rss';
		const button = h('button', {type: 'button', 'aria-pressed': String(!state.hidden.has(k)), onclick: () => {
			if (!state.hidden.delete(k))
				state.hidden.add(k);
			button.setAttribute('aria-pressed', String(!state.hidden.has(k)));
			draw();
		}}, swatch(name, stacked.includes(k) ? '' : k === 'rss' || k === 'live' ? 'line' : 'line dash'), seriesName(k));
		return button;
	}));
	redraws.push(draw);
	const keys = [...lines, ...stacked];
	const makeTable = () => table([{title: 'Time (UTC)'}, ...keys.map(k => ({title: seriesName(k), n: 1}))],
		t.map((v, i) => [clock(v, true), ...keys.map(k => bytes(series[k][i]))]), {label: 'Memory over time'});
	return section('timeline', 'Over time', 'Live bytes by tier, stacked, under what the process holds.',
		t.length > 1 ? [h('div', {class: 'head'}, toggles, h('div', {class: 'controls'}, zoomIn, reset)), chart, readout] : h('p', {class: 'none'}, 'The process has not run long enough for a timeline.'), t.length > 1 && makeTable);
}
