// Puts the page together; themes and keys.

function setTheme(theme) {
	document.documentElement.dataset.theme = theme;
	redraw();
}

function help() {
	const keys = [['1 … 9', 'go to a section'], ['/', 'search sites'], ['t', 'chart or table, of the section in sight'], ['d', 'light or dark'], ['← → ↑ ↓', 'move in a chart that has the focus'], ['Shift + ← →', 'select in the timeline'], ['Enter', 'zoom in'], ['Esc', 'zoom out'], ['?', 'this help']];
	const dialog = h('dialog', {'aria-label': 'Keys', onclose: () => dialog.remove()}, h('h2', {}, 'Keys'), h('dl', {}, keys.map(([k, v]) => [h('dt', {}, h('kbd', {}, k)), h('dd', {}, v)])),
		h('form', {method: 'dialog'}, h('button', {class: 'plain', type: 'submit', autofocus: true, onclick: e => {
			e.preventDefault();
			dialog.close();
		}}, 'Close')));
	document.body.append(dialog);
	dialog.showModal();
}

function keys(sections) {
	addEventListener('keydown', e => {
		if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]'))
			return;
		const typing = e.target.matches && e.target.matches('input, select, textarea');
		if (typing) {
			if (e.key === 'Escape')
				e.target.blur();
			return;
		}
		const go = node => node && (node.scrollIntoView(), node.querySelector('h2').setAttribute('tabindex', '-1'), node.querySelector('h2').focus({preventScroll: true}));
		if (e.key >= '1' && e.key <= '9')
			go(sections[e.key - 1]);
		else if (e.key === '/')
			(e.preventDefault(), document.getElementById('find-site').focus());
		else if (e.key === 't')
			inSight(sections, s => s.toggle && s.toggle());
		else if (e.key === 'd')
			setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
		else if (e.key === '?')
			help();
	});
}

function inSight(sections, use) {
	const own = document.activeElement && document.activeElement.closest('section');
	use(own || [...sections].reverse().find(s => s.getBoundingClientRect().top < innerHeight * .4) || sections[0]);
}

const SHORT = {leaks: 'Leaks', balance: 'Balance', timeline: 'Time', stacks: 'Stacks', ages: 'Ages', lifetimes: 'Lifetimes', pages: 'Pages', classes: 'Classes', devices: 'Devices', sites: 'Sites', more: 'Detail', blind: 'Blind spots'};

function download() {
	const url = URL.createObjectURL(new Blob([JSON.stringify(pristine)], {type: 'application/json'}));
	h('a', {href: url, download: `${doc.process.program || 'report'}-${doc.process.pid ?? 0}.json`}).click();
	setTimeout(() => URL.revokeObjectURL(url), 1000);
}
let pristine = null;

async function main() {
	const dark = matchMedia('(prefers-color-scheme: dark)');
	document.documentElement.dataset.theme = dark.matches ? 'dark' : 'light';
	dark.addEventListener('change', e => setTheme(e.matches ? 'dark' : 'light'));
	pristine = await readReport();
	setReport({...pristine});
	derive();
	const sections = [leaksSection(), balanceSection(), timelineSection(), flameSection(), heatSection(), lifetimesSection(), pagesSection(), classesSection(), devicesSection(), sitesSection(), moreSection(), blindSection()].filter(Boolean);
	const links = sections.map(s => h('a', {href: `#${s.id}`}, SHORT[s.id]));
	document.body.replaceChildren(
		h('div', {class: 'bar'}, h('div', {class: 'bar-in'}, h('div', {class: 'brand'}, 'tiermalloc ', h('span', {}, isDiff() ? 'diff' : 'report')), h('nav', {'aria-label': 'Sections'}, h('ul', {}, links.map(a => h('li', {}, a)))),
			h('div', {class: 'tools'}, h('button', {class: 'plain', type: 'button', title: 'The report as JSON', onclick: download}, 'JSON'),
				h('button', {class: 'plain icon', type: 'button', title: 'Light or dark (d)', 'aria-label': 'Light or dark', onclick: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark')}, '◐'),
				h('button', {class: 'plain icon', type: 'button', title: 'Keys (?)', 'aria-label': 'Keys', onclick: help}, '?')))),
		h('main', {}, verdictNode(), factsNode(), sections,
			h('footer', {}, h('span', {}, `tiermalloc ${doc.tool.version || ''} · ${doc.schema}${doc.capture.counts ? ` · counts ${doc.capture.counts}` : ''}`), h('span', {}, doc.process.ledger ? `from ${doc.process.ledger}` : ''))));
	redraw();
	keys(sections);
	let width = innerWidth, pending = 0;
	addEventListener('resize', () => {
		cancelAnimationFrame(pending);
		if (innerWidth !== width)
			pending = requestAnimationFrame(() => (width = innerWidth, redraw()));
	});
	const mark = () => {
		const now = [...sections].reverse().find(s => s.getBoundingClientRect().top < 140);
		links.forEach((a, i) => (sections[i] === now ? a.setAttribute('aria-current', 'true') : a.removeAttribute('aria-current')));
	};
	addEventListener('scroll', mark, {passive: true});
	addEventListener('beforeprint', redraw);
	mark();
	document.documentElement.dataset.ready = 'yes';
}

main().catch(e => {
	document.body.replaceChildren(h('main', {}, h('h1', {}, 'This report cannot be shown'), h('p', {}, e.message)));
	document.documentElement.dataset.ready = 'no';
	console.error(e);
});
