'use strict';
// Helpers of the page. Text from the report only ever becomes text nodes.

const KIB = 1024;
const TIERS = ['persistent', 'session', 'temporary'];

const num = v => (v === null || v === undefined ? null : Number(v));
const or0 = v => (v === null || v === undefined ? 0 : Number(v));
const known = v => v !== null && v !== undefined && Number.isFinite(Number(v));

function fill(node, children) {
	for (const c of children.flat(9)) {
		if (c === null || c === undefined || c === false)
			continue;
		node.append(c instanceof Node ? c : String(c));
	}
	return node;
}

function attributes(node, attrs) {
	for (const [k, v] of Object.entries(attrs || {})) {
		if (v === null || v === undefined || v === false)
			continue;
		if (k.startsWith('on'))
			node.addEventListener(k.slice(2), v);
		else if (k === 'style')
			Object.assign(node.style, v);
		else
			node.setAttribute(k, v === true ? '' : v);
	}
	return node;
}

const h = (tag, attrs, ...children) => fill(attributes(document.createElement(tag), attrs), children);
const g = (tag, attrs, ...children) =>
	fill(attributes(document.createElementNS('http://www.w3.org/2000/svg', tag), attrs), children);

function digits(x) {
	const a = Math.abs(x);
	return a >= 99.95 || a === 0 ? x.toFixed(0) : a >= 9.995 ? x.toFixed(1) : x.toFixed(2);
}

// Three significant digits, powers of 1024.
function bytes(value) {
	if (!known(value))
		return '–';
	const n = Number(value), a = Math.abs(n);
	if (a < KIB)
		return `${Math.round(n)} B`.replace('-', '−');
	const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
	let i = 0, x = n / KIB;
	while (Math.abs(x) >= 999.5 && i < units.length - 1) {
		x /= KIB;
		i++;
	}
	return `${digits(x)} ${units[i]}`.replace('-', '−');
}

const count = v => (known(v) ? Math.round(Number(v)).toLocaleString('en-US').replace('-', '−') : '–');
const percent = (v, d = 0) => (known(v) ? `${(v * 100).toFixed(d)} %` : '–');
const signed = (v, f) => (known(v) ? (v > 0 ? '+' : '') + f(v) : '–');
const ratio = v => (known(v) ? Number(v).toFixed(2) : '–');

function span(seconds) {
	if (!known(seconds))
		return '–';
	const s = Math.round(seconds), d = Math.floor(s / 86400), hours = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
	if (d > 0)
		return `${d} d ${hours} h`;
	if (s >= 3600)
		return `${hours} h ${m} min`;
	if (s >= 60)
		return `${m} min`;
	return `${s} s`;
}

const pad = n => String(n).padStart(2, '0');
function clock(seconds, long) {
	const d = new Date(seconds * 1000);
	const time = `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}`;
	return long ? `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())} ${time} UTC` : time;
}

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const tierVar = tier => (TIERS.includes(tier) ? `--${tier}` : '--other');
const tierClass = tier => `c-${TIERS.includes(tier) ? tier : 'other'}`;

// One tip for all charts; what it says is also in each chart's table.
const tip = {
	node: null,
	show(event, text) {
		if (!this.node)
			document.body.append(this.node = h('div', {class: 'tip', hidden: true, 'aria-hidden': 'true'}));
		this.node.textContent = text;
		this.node.hidden = false;
		const box = this.node.getBoundingClientRect();
		const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
		const y = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18;
		this.node.style.left = `${Math.max(8, x)}px`;
		this.node.style.top = `${Math.max(8, y)}px`;
	},
	hide() {
		if (this.node)
			this.node.hidden = true;
	},
};
const tipped = text => ({onmousemove: e => tip.show(e, text), onmouseleave: () => tip.hide()});

// {title, n: right-aligned} columns; rows of cells: text, node, or {v, class}.
function table(columns, rows, options = {}) {
	const cell = (c, i) => {
		const plain = c === null || typeof c !== 'object' || c instanceof Node || Array.isArray(c);
		const name = [columns[i].n ? 'n' : '', plain ? '' : c.class || ''].join(' ').trim();
		return h('td', {class: name || null}, plain ? c : c.v);
	};
	return h('div', {class: 'scroll', tabindex: rows.length > 14 ? 0 : null, role: rows.length > 14 ? 'region' : null,
		'aria-label': rows.length > 14 ? options.label || 'Table' : null},
		h('table', {},
			h('thead', {}, h('tr', {}, columns.map(c => h('th', {scope: 'col', class: c.n ? 'n' : null}, c.title)))),
			h('tbody', {}, rows.map(r => h('tr', {class: r.total ? 'total' : null}, (r.cells || r).map(cell))))));
}

function segments(label, choices, chosen, pick) {
	const buttons = choices.map(c => h('button', {type: 'button', 'aria-pressed': String(c.key === chosen), disabled: c.off,
		title: c.title, onclick: () => {
			buttons.forEach((b, i) => b.setAttribute('aria-pressed', String(choices[i].key === c.key)));
			pick(c.key);
		}}, c.label));
	return h('div', {class: 'segments', role: 'group', 'aria-label': label}, buttons);
}

// Everything that must be drawn anew when the width or the theme changes.
const redraws = [];
const redraw = () => redraws.forEach(f => f());

// A section with a chart and its twin, a table; `t` or the buttons switch.
function section(id, title, lede, chart, makeTable, controls = []) {
	const picture = h('div', {}, chart);
	let twin = null;
	const show = key => {
		if (key === 'table' && !twin)
			picture.after(twin = makeTable());
		picture.hidden = key === 'table';
		if (twin)
			twin.hidden = key !== 'table';
		if (key === 'chart')
			redraw();
	};
	const toggle = makeTable && segments('Show as', [{key: 'chart', label: 'Chart'}, {key: 'table', label: 'Table'}], 'chart', show);
	const node = h('section', {id, 'aria-labelledby': `${id}-title`},
		h('div', {class: 'head'},
			h('div', {}, h('h2', {id: `${id}-title`}, title), lede && h('p', {class: 'lede'}, lede)),
			h('div', {class: 'controls'}, controls, toggle)),
		h('div', {class: 'card'}, picture));
	node.renewTable = () => {
		if (twin) {
			const next = makeTable();
			next.hidden = twin.hidden;
			twin.replaceWith(next);
			twin = next;
		}
	};
	node.toggle = () => toggle && toggle.children[picture.hidden ? 0 : 1].click();
	return node;
}

const swatch = (name, extra = '') => h('span', {class: `swatch c-${name} ${extra}`.trim()});
const legend = items => h('ul', {class: 'legend'}, items.map(([name, text, extra]) => h('li', {}, swatch(name, extra), text)));

// A step of an axis of bytes: a power of two, so that every tick is a round number of bytes.
function byteTicks(max, about) {
	const step = 2 ** Math.ceil(Math.log2(Math.max(max, 1) / about));
	const ticks = [];
	for (let v = 0; v <= max * 1.0001; v += step)
		ticks.push(v);
	return ticks;
}

// Pixel-exact canvas of the element's width; returns its context.
function canvasOf(canvas, height) {
	const width = canvas.clientWidth, scale = devicePixelRatio || 1;
	canvas.width = Math.max(1, Math.round(width * scale));
	canvas.height = Math.max(1, Math.round(height * scale));
	canvas.style.height = `${height}px`;
	const c = canvas.getContext('2d');
	c.setTransform(scale, 0, 0, scale, 0, 0);
	c.clearRect(0, 0, width, height);
	return c;
}
