// The report that the page carries, and what is derived from it.

async function readReport() {
	const node = document.getElementById('report');
	const text = node.textContent.trim();
	if (node.dataset.encoding !== 'gzip+base64')
		return JSON.parse(text);
	if (typeof DecompressionStream === 'undefined')
		throw new Error('This browser cannot unpack the report. Export it again with --uncompressed.');
	const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
	return JSON.parse(await new Response(stream).text());
}

let doc = null;
let byId = new Map();

function setReport(report) {
	doc = report;
	byId = new Map(doc.sites.map(s => [s.id, s]));
}

const baseName = path => (path || '').split('/').pop();
const isDiff = () => doc.kind === 'diff';

function frameName(f) {
	if (f.fn !== null)
		return f.fn;
	const m = f.module === null ? null : doc.modules[f.module];
	if (m && m.path && f.addr) {
		try {
			const at = BigInt(f.addr) - BigInt(m.base || 0) + BigInt(m.offset || 0);
			return `${baseName(m.path)}+0x${at.toString(16)}`;
		} catch {
			return baseName(m.path);
		}
	}
	return f.addr || '(unknown)';
}

const framesOf = site => (site && site.stack !== null ? doc.stacks[site.stack].frames.map(i => doc.frames[i]) : []);
const OTHER = '(other sites)';

// Frames of libraries that everything goes through say little about who asked.
const plumbing = /^((void\*? |bool )?std::|__gnu_cxx::|operator new|__libc_|_start$|_?PyMem_|_?PyObject_Malloc|x(malloc|calloc|realloc|strdup)|g_(malloc|realloc)|CRYPTO_([mz]al|real)loc|os::(re|m)alloc|(All|Reall)ocateHeap)/;
const runtime = /^(libstdc\+\+|libc\+\+|libc[.-]|libm[.-]|libgcc_s|ld-linux|ld-musl|libpthread|libtiermalloc)/;
const interpreter = /^(lib)?python3/;
function ownFrame(site) {
	const frames = framesOf(site);
	const file = f => (f.module === null ? '' : baseName(doc.modules[f.module].path || ''));
	const through = f => plumbing.test(frameName(f)) || runtime.test(file(f));
	return frames.find(f => !through(f) && !interpreter.test(file(f))) || frames.find(f => !through(f)) || frames[0] || null;
}
const siteName = site => {
	const f = ownFrame(site);
	return f ? frameName(f) : OTHER;
};
const place = f => (f && f.file ? f.line ? `${f.file}:${f.line}` : f.file : '');

function stackNode(site) {
	const frames = framesOf(site);
	return h('div', {class: 'stack'},
		frames.length === 0 ? OTHER : frames.map((f, i) => h('div', {class: f.inline_of !== null ? 'inl' : null},
			i ? h('i', {}, '← ') : '', frameName(f),
			f.inline_of !== null && h('i', {}, ' inlined'), f.lang === 'py' && h('i', {}, ' py'),
			place(f) && h('i', {}, `  ${place(f)}`))));
}

// The weights that a flame graph can have.
const VIEWS = {
	live: {label: 'Live', unit: bytes, of: s => or0(s.live_bytes), what: 'live bytes'},
	growth: {label: 'Growth', unit: bytes, of: s => or0(s.growth_bytes), what: 'bytes of objects that outlive their peers'},
	rate: {label: 'Rate', unit: v => `${bytes(v)}/s`, of: s => or0(s.alloc_bytes) / Math.max(1, doc.seconds), what: 'bytes allocated each second'},
	temporary: {label: 'Temporary', unit: count, of: s => or0(s.temporary_objs), what: 'objects freed in the window of their birth'},
	pinned: {label: 'Pinned', unit: bytes, of: s => or0(s.frag_pinned_bytes), what: 'waste of 2 MiB pages charged to their oldest objects'},
	diff: {label: 'A → B', unit: bytes, of: s => Math.abs(or0(s.live_bytes) - or0(s.base_live_bytes)), what: 'change of live bytes'},
};

const PARTS = [
	['live_req', 'Live, as requested', 'live'],
	['internal', 'Rounding to slots', 'internal'],
	['external', 'Free slots beside live ones', 'external'],
	['cached', 'Cached free pages', 'cached'],
	['metadata', 'Our own tables', 'metadata'],
	['other_anon', 'Other allocators, stacks', 'other'],
	['file', 'Mapped files', 'file'],
	['pinned', 'Pinned for a device', 'pinned'],
	['nonresident', 'Live but not resident', 'nonresident'],
	['residual', 'Unexplained', 'residual'],
];

function derive() {
	const t0 = Number(doc.capture.t0_unix_ns || doc.process.start_unix_ns || 0) / 1e9;
	const t1 = Number(doc.capture.t1_unix_ns || 0) / 1e9;
	doc.seconds = t1 > t0 && t0 > 0 ? t1 - t0 : 0;
	doc.end = t1;
	doc.liveBytes = doc.sites.reduce((a, s) => a + or0(s.live_bytes), 0);
	doc.liveObjs = doc.sites.reduce((a, s) => a + or0(s.live_objs), 0);
}
