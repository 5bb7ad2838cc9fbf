// Stacks as an icicle: callers above, what they call below, width by the chosen weight.

function buildTree(view) {
	const root = {name: 'all', depth: 0, value: 0, self: 0, up: null, kids: new Map(), tiers: [0, 0, 0, 0], delta: 0};
	for (const s of doc.sites) {
		const w = VIEWS[view].of(s);
		if (!(w > 0))
			continue;
		const frames = framesOf(s), tier = TIERS.indexOf(s.tier), delta = or0(s.live_bytes) - or0(s.base_live_bytes);
		let node = root;
		const step = (name, frame) => {
			let kid = node.kids.get(name);
			if (!kid)
				node.kids.set(name, kid = {name, frame, depth: node.depth + 1, value: 0, self: 0, up: node, kids: new Map(), tiers: [0, 0, 0, 0], delta: 0});
			node = kid;
		};
		const add = () => {
			node.value += w;
			node.delta += delta;
			node.tiers[tier < 0 ? 3 : tier] += w;
		};
		add();
		for (let i = frames.length - 1; i >= 0; i--) {
			step(frameName(frames[i]), frames[i]);
			add();
		}
		if (frames.length === 0) {
			step(OTHER, null);
			add();
		}
		node.self += w;
		(node.sites = node.sites || []).push(s.id);
	}
	return root;
}

const shade = name => {
	let x = 7;
	for (let i = 0; i < name.length; i++)
		x = (x * 31 + name.charCodeAt(i)) & 0xffff;
	return x % 5;
};

// Black or white, whichever reads better on a colour laid over the paper.
function inkOn(color, strength, paper) {
	const parts = x => [1, 3, 5].map(i => parseInt(x.slice(i, i + 2), 16) / 255);
	const under = parts(paper), linear = v => (v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
	const [r, gr, b] = parts(color).map((v, i) => linear(v * strength + under[i] * (1 - strength)));
	return .2126 * r + .7152 * gr + .0722 * b > .19 ? '#0d0f14' : '#ffffff';
}

function flameSection() {
	const usable = Object.keys(VIEWS).filter(k => (k === 'diff') === isDiff() || k !== 'diff');
	const has = Object.fromEntries(usable.map(k => [k, doc.sites.some(s => VIEWS[k].of(s) > 0)]));
	const state = {view: isDiff() && has.diff ? 'diff' : has.live ? 'live' : usable.find(k => has[k]) || 'live', zoom: null, picked: null, find: ''};
	const ROW = 20, MOST_ROWS = 34;
	let root = null, rects = [];
	const canvas = h('canvas', {tabindex: 0, role: 'application', 'aria-roledescription': 'flame graph', 'aria-label': 'Stacks by weight. Arrow keys move between callers and callees, Enter zooms, Escape goes back.'});
	const readout = h('p', {class: 'readout', 'aria-live': 'polite'});
	const back = h('button', {class: 'plain', type: 'button', hidden: true, onclick: () => zoom(null)}, 'Whole graph');

	const children = n => [...n.kids.values()].sort((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1));
	const unit = v => VIEWS[state.view].unit(v);

	function zoom(node) {
		state.zoom = node && node !== root ? node : null;
		back.hidden = !state.zoom;
		draw();
	}

	function color(n) {
		if (state.view === 'diff')
			return n.delta > 0 ? css('--bad') : n.delta < 0 ? css('--less') : css('--other');
		const most = n.tiers.indexOf(Math.max(...n.tiers));
		return css(tierVar(TIERS[most]));
	}

	function layout(width) {
		rects = [];
		const top = state.zoom || root, above = [];
		for (let n = top.up; n; n = n.up)
			above.unshift(n);
		above.forEach((n, i) => rects.push({n, x: 0, w: width, row: i, dim: true}));
		const place = (n, x, w, row) => {
			rects.push({n, x, w, row});
			let at = x;
			for (const kid of children(n)) {
				const part = w * kid.value / n.value;
				if (part < .6)
					break; // sorted: the rest is narrower still
				place(kid, at, part, row + 1);
				at += part;
			}
		};
		if (top.value > 0)
			place(top, 0, width, above.length);
		return Math.min(MOST_ROWS, 1 + rects.reduce((a, r) => Math.max(a, r.row), 0));
	}

	function draw() {
		if (!root || root.value === 0) {
			canvas.hidden = true;
			readout.textContent = `Nothing to show: ${VIEWS[state.view].what} are not known or none.`;
			return;
		}
		canvas.hidden = false;
		const width = canvas.clientWidth || 600, rows = layout(width);
		const c = canvasOf(canvas, rows * ROW);
		const paper = css('--card'), ink = css('--ink'), find = state.find.toLowerCase();
		const colors = new Map();
		root.color = css('--other');
		c.font = `11.5px ${css('--mono')}`;
		c.textBaseline = 'middle';
		let hits = 0;
		for (const r of rects) {
			if (r.row >= rows)
				continue;
			const hit = !find || r.n.name.toLowerCase().includes(find);
			const key = state.view === 'diff' ? Math.sign(r.n.delta) : r.n.tiers.indexOf(Math.max(...r.n.tiers));
			if (!colors.has(key))
				colors.set(key, color(r.n));
			const strength = r.n === root ? .18 : !hit ? .13 : r.dim ? .35 : .62 + .085 * shade(r.n.name);
			c.globalAlpha = strength;
			c.base = r.n === root ? root.color : colors.get(key);
			c.fillStyle = c.base;
			c.fillRect(r.x, r.row * ROW, Math.max(.6, r.w - (r.w > 2 ? 1 : 0)), ROW - 1);
			c.globalAlpha = 1;
			hits += find && hit && r.n !== root ? 1 : 0;
			if (r.w > 34) {
				c.fillStyle = r.n === root || r.dim || !hit ? ink : inkOn(c.base, strength, paper);
				let text = r.n.name;
				const room = Math.floor((r.w - 9) / 6.95);
				if (text.length > room)
					text = room > 2 ? `${text.slice(0, room - 1)}…` : '';
				c.fillText(text, r.x + 5, r.row * ROW + ROW / 2 - .5);
			}
			if (r.n === state.picked) {
				c.strokeStyle = ink;
				c.lineWidth = 2;
				c.strokeRect(r.x + 1, r.row * ROW + 1, Math.max(1, r.w - 3), ROW - 3);
			}
		}
		say(hits);
	}

	function describe(n) {
		const share = n.value / root.value;
		return [h('b', {}, n.name), place(n.frame) && ` (${place(n.frame)})`, `: ${unit(n.value)}, ${percent(share, 1)}`,
			n.self > 0 && n.self !== n.value && `, ${unit(n.self)} of it called from here itself`, state.view === 'diff' && `, net ${signed(n.delta, bytes)}`, n.sites && `, site ${n.sites.slice(0, 3).join(', ')}${n.sites.length > 3 ? ` and ${n.sites.length - 3} more` : ''}`];
	}

	function say(hits) {
		if (state.picked)
			fill((readout.replaceChildren(), readout), describe(state.picked));
		else
			readout.textContent = state.find ? `${hits} frames in sight match “${state.find}”.` : `${unit(root.value)} ${VIEWS[state.view].unit === count ? '' : 'in all: '}${VIEWS[state.view].what}. Click or press Enter to zoom.`;
	}

	function under(e) {
		const box = canvas.getBoundingClientRect();
		const x = e.clientX - box.left, row = Math.floor((e.clientY - box.top) / ROW);
		return rects.find(r => r.row === row && x >= r.x && x <= r.x + r.w);
	}

	function rebuild() {
		root = buildTree(state.view);
		Object.assign(state, {zoom: null, picked: null});
		back.hidden = true;
		draw();
		if (node)
			node.renewTable();
	}

	attributes(canvas, {
		onmousemove: e => {
			const r = under(e);
			if (r)
				tip.show(e, `${r.n.name}${place(r.n.frame) ? `\n${place(r.n.frame)}` : ''}\n${unit(r.n.value)} · ${percent(r.n.value / root.value, 1)}${state.view === 'diff' ? ` · net ${signed(r.n.delta, bytes)}` : ''}`);
			else
				tip.hide();
		},
		onmouseleave: () => tip.hide(),
		onclick: e => {
			const r = under(e);
			if (r) {
				state.picked = r.n;
				zoom(r.n);
			}
		},
		onkeydown: e => {
			const top = state.zoom || root, n = state.picked || top;
			const siblings = n.up ? children(n.up) : [n];
			const next = {ArrowUp: () => n.up, ArrowDown: () => children(n)[0], ArrowLeft: () => siblings[siblings.indexOf(n) - 1], ArrowRight: () => siblings[siblings.indexOf(n) + 1]}[e.key];
			if (next) {
				state.picked = (state.picked ? next() : top) || n;
				const inside = (x, y) => (y ? x === y || inside(x, y.up) : false);
				if (state.zoom && !inside(state.zoom, state.picked))
					state.zoom = state.picked.up && state.picked.up !== root ? state.picked : null;
				draw();
			} else if (e.key === 'Enter' || e.key === ' ') {
				zoom(n);
			} else if (e.key === 'Escape') {
				zoom(state.zoom ? state.zoom.up : null);
			} else {
				return;
			}
			e.preventDefault();
		},
	});

	const makeTable = () => {
		const rows = new Map();
		const walk = (n, seen) => {
			const first = !seen.has(n.name);
			let r = rows.get(n.name);
			if (!r)
				rows.set(n.name, r = {total: 0, self: 0, where: place(n.frame)});
			r.self += n.self;
			if (first) {
				r.total += n.value;
				seen.add(n.name);
			}
			for (const k of n.kids.values())
				walk(k, seen);
			if (first)
				seen.delete(n.name);
		};
		for (const k of root.kids.values())
			walk(k, new Set());
		const list = [...rows].sort((a, b) => b[1].self - a[1].self || b[1].total - a[1].total);
		return table([{title: 'Function'}, {title: 'Itself', n: 1}, {title: 'With callees', n: 1}, {title: 'Share', n: 1}],
			list.slice(0, 400).map(([name, r]) => [h('span', {}, h('code', {}, name), r.where && h('span', {class: 'sub'}, r.where)), unit(r.self), unit(r.total), percent(r.total / (root.value || 1), 1)]), {label: 'Functions by weight'});
	};
	const views = segments('Weight', usable.map(k => ({key: k, label: VIEWS[k].label, off: !has[k], title: has[k] ? VIEWS[k].what : `${VIEWS[k].what}: not known or none`})), state.view, key => {
		state.view = key;
		rebuild();
	});
	const find = h('input', {class: 'search', type: 'search', placeholder: 'Highlight functions', 'aria-label': 'Highlight functions', oninput: e => {
		state.find = e.target.value.trim();
		draw();
	}});
	root = buildTree(state.view);
	const node = section('stacks', 'Who asked for it', 'Callers above, what they call below. Width is the chosen weight, colour the tier.',
		[h('div', {class: 'head'}, views, h('div', {class: 'controls'}, back, find)), canvas, readout,
			isDiff() ? legend([['bad', 'more in B'], ['less', 'less in B']]) : legend([...TIERS.map(x => [x, x]), ['other', 'no tier']])], makeTable);
	redraws.push(draw);
	return node;
}
