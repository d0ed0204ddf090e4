import assert from 'node:assert/strict';
import { text as collect } from 'node:stream/consumers';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { KubelingError } from '../../lib/index.ts';
import type { Request } from '../router.ts';
import type { Journal } from './journal.ts';
import type { LogNode, LogTree } from './log-tree.ts';
import { systemLogsRoute } from './logs-route.ts';

const files: Readonly<Record<string, string>> = {
  syslog: 'from syslog',
  'foo.log': 'from foo.log',
  'bar/bar.log': 'from bar',
};

async function* chunksOf(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content);
}

const tree: LogTree = {
  async inspect(path): Promise<LogNode> {
    const name = path.replace(/^\//, '');
    if (name === 'bar' || name === '') return { kind: 'directory', names: ['a&<b>.log', 'sub/'] };
    if (name === 'out') throw new KubelingError('LOG_REFUSED', 'Cannot read a log of the host: it is a link');
    const content = files[name];
    return content === undefined ? { kind: 'absent' } : { kind: 'file', chunks: chunksOf(content) };
  },
};

const journal: Journal = {
  units: async () => new Set(['kubelet.service', 'x.socket']),
  read: (units, options) => chunksOf(`journal of ${units.join(' ')} ${JSON.stringify(options)}`),
};

async function get(
  target: string,
  change: { journal?: Journal | undefined; clock?: VirtualClock } = { journal },
) {
  const { clock = new VirtualClock() } = change;
  const url = new URL(target, 'http://x');
  const route = systemLogsRoute({ clock, tree, journal: change.journal });
  const request: Request = {
    ...{ method: 'GET', path: url.pathname, params: {}, query: url.searchParams, headers: {} },
    body: async () => '',
  };
  const { status, body } = await route.answer(request, new AbortController().signal);
  return `${status} ${typeof body === 'string' ? body : await collect(body)}`;
}

test('serves log files and directories of the host, and lists file names unchanged', async () => {
  assert.equal(await get('/logs/syslog'), '200 from syslog');
  assert.equal(await get('/logs/none'), '404 404 page not found\n');
  assert.match(await get('/logs/out'), /^403 /);
  assert.equal(await get('/logs/%E0%A4%A'), '404 404 page not found\n');
  const listing = await get('/logs/bar');
  assert.match(listing, /<a href="\.\/bar\/a%26%3Cb%3E\.log">a&#38;&#60;b&#62;\.log<\/a>/);
  assert.match(listing, /<a href="\.\/bar\/sub\/">sub\/<\/a>/);
});

test('ignores log queries when they are disabled', async () => {
  assert.match(await get('/logs/?query=kubelet', {}), /^200 <!doctype html>/);
});

test('reads the log of a service from the journal, or from the file with its name', async () => {
  assert.equal(await get('/logs/?query=kubelet'), '200 journal of kubelet.service {}');
  assert.equal(await get('/logs/?query=x.socket&tailLines=5'), '200 journal of x.socket {"tailLines":5}');
  assert.equal(await get('/logs/?query=syslog&query=foo&query=bar'), '200 from syslogfrom foo.logfrom bar');
  assert.equal(await get('/logs/?query=none'), '200 \nerror: there is no log of none\n');
  assert.match(await get('/logs/?query=out'), /error: the log of out cannot be read/);
});

test('rejects log query options for services that write to files instead of the journal', async () => {
  assert.match(
    await get('/logs/?query=foo&tailLines=5'),
    /options need a journal, but these services write to files: foo/,
  );
});

test('responds with 406 when the file named in a log query does not exist', async () => {
  assert.equal(await get('/logs/?query=/syslog'), '200 from syslog');
  assert.equal(await get('/logs/?query=bar\\bar.log'), '200 from bar');
  assert.match(await get('/logs/?query=/none'), /^406 /);
  assert.match(await get('/logs/?query=/out'), /^406 /);
});

test('accepts log queries only at /logs/ itself, and reports invalid options', async () => {
  assert.match(await get('/logs/syslog?query=kubelet'), /^406 a query must be sent to \/logs\/ itself/);
  assert.match(await get('/logs/?query=a;id'), /^406 /);
  assert.match(await get('/logs/?query=a&boot=x'), /^400 /);
});

test('reports a failing or endless journal in the text of the response', async () => {
  const broken: Journal = {
    ...journal,
    read: () => {
      throw new Error('x');
    },
  };
  assert.equal(
    await get('/logs/?query=kubelet', { journal: broken }),
    '200 \nerror: the journal cannot be read\n',
  );
  const clock = new VirtualClock();
  const endless: Journal = {
    ...journal,
    async *read(_units, _options, signal) {
      yield Buffer.from('first');
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    },
  };
  const request = get('/logs/?query=kubelet', { journal: endless, clock });
  for (let step = 0; step < 5; step++) await clock.advance(10_000);
  assert.equal(await request, '200 first\nerror: reading the journal took too long\n');
});
