import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import * as yaml from 'yaml';
import { defaultRules, podManifest } from '../../test/fakes/manifests.ts';
import { MemoryManifestFiles } from '../../test/fakes/memory-source-files.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';
import { FileSource } from './file-source.ts';
import { HttpSource } from './http-source.ts';
import { describeProblem } from './problems.ts';
// The UID module is imported here, because the source would otherwise load it on first use, which
// takes real time while virtual time passes.
import './uid/static-uid.ts';

const folder = '/etc/manifests';
const url = 'http://example.com/pods';
const heavy = '- a: b\n'.repeat(400_000);

/** In-memory manifest files whose reads hang until they are released. */
class HangingFiles extends MemoryManifestFiles {
  readonly hanging = new Set<string>();
  readonly reads: string[] = [];

  override async read(path: string): Promise<Uint8Array | undefined> {
    this.reads.push(path);
    if (this.hanging.has(path)) await new Promise(() => {});
    return await super.read(path);
  }
}

type Kind = { readonly files: HangingFiles } | { readonly get: () => string };

async function run(t: TestContext, kind: Kind) {
  const lexer = t.mock.method(yaml.Lexer.prototype, 'lex').mock;
  const parser = t.mock.method(yaml.Parser.prototype, 'end').mock;
  const clock = new VirtualClock();
  const sets: (readonly Pod[])[] = [];
  const common = {
    clock,
    nodeName: 'node-a',
    rules: defaultRules,
    logger: collectLogs(clock).logger,
    resyncMs: 20_000,
    setPods: (pods: readonly Pod[]) => void sets.push(pods),
    onProblem: () => {},
  };
  const source =
    'files' in kind
      ? new FileSource({ ...common, path: folder, files: kind.files })
      : new HttpSource({
          ...common,
          url,
          headers: {},
          get: async () => ({ status: 200, body: Buffer.from(kind.get()) }),
        });
  const stop = new AbortController();
  const running = source.run(stop.signal);
  await advance(clock, 1_000);
  return {
    advance: async (ms: number) => await advance(clock, ms),
    sets,
    lexer,
    parser,
    names: () => sets.at(-1)?.map(({ metadata }) => metadata.name),
    problems: () => source.problems().map(describeProblem),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      assert.equal(clock.pendingTimers, 0);
    },
  };
}

/** Advances virtual time in steps; a large text is parsed slice by slice between the steps. */
async function advance(clock: VirtualClock, ms: number) {
  for (let leftMs = ms; leftMs > 0; leftMs -= 1_000) {
    await clock.advance(Math.min(leftMs, 1_000));
    for (let turns = 0; turns < 400; turns++) await new Promise((resolve) => setImmediate(resolve));
  }
}

function filesWith(texts: Readonly<Record<string, string>>): HangingFiles {
  const files = new HangingFiles();
  for (const [name, text] of Object.entries(texts)) files.write(`${folder}/${name}`, text);
  return files;
}

test('reports a manifest that is too complex to parse, and uses the other manifests', async (t) => {
  const files = filesWith({ 'a.yaml': podManifest('a'), 'b.yaml': heavy, 'c.yaml': podManifest('c') });
  await using harness = await run(t, { files });
  await harness.advance(1_000);
  assert.deepEqual(harness.names(), ['a-node-a', 'c-node-a']);
  assert.equal(harness.problems().length, 1);
  assert.match(
    harness.problems()[0] ?? '',
    /^\/etc\/manifests\/b\.yaml:\d+:\d+: must have at most \d+ words/,
  );
  assert.equal(harness.parser.callCount(), 2, 'only the valid manifests are parsed');
});

test('does not read a rejected manifest again while it is unchanged', async (t) => {
  const files = filesWith({ 'b.yaml': heavy });
  await using harness = await run(t, { files });
  assert.equal(harness.lexer.callCount(), 1);
  await harness.advance(120_000);
  assert.equal(harness.lexer.callCount(), 1);
  assert.equal(harness.problems().length, 1);
  files.write(`${folder}/b.yaml`, podManifest('b'));
  await harness.advance(1_000);
  assert.deepEqual([harness.names(), harness.problems()], [['b-node-a'], []]);
});

test('reports a manifest on which the parser itself fails, and does not parse it again', async (t) => {
  const files = filesWith({ 'a.yaml': podManifest('a') });
  await using harness = await run(t, { files });
  harness.parser.mockImplementation(() => {
    throw new RangeError('Maximum call stack size exceeded');
  });
  files.write(`${folder}/b.yaml`, podManifest('b'));
  await harness.advance(120_000);
  assert.deepEqual(harness.names(), ['a-node-a']);
  assert.deepEqual(harness.problems(), [
    `${folder}/b.yaml: cannot be read: Maximum call stack size exceeded`,
  ]);
  assert.equal(harness.parser.callCount(), 2);
});

test('keeps the pod when its manifest becomes too complex to parse', async (t) => {
  const files = filesWith({ 'a.yaml': podManifest('a') });
  await using harness = await run(t, { files });
  files.write(`${folder}/a.yaml`, heavy);
  await harness.advance(60_000);
  assert.deepEqual([harness.names(), harness.sets.length, harness.problems().length], [['a-node-a'], 1, 1]);
});

test('skips a manifest that cannot be read in time and does not read it a second time concurrently', async (t) => {
  const files = filesWith({
    'a.yaml': podManifest('a'),
    'b.yaml': podManifest('b'),
    'c.yaml': podManifest('c'),
  });
  files.hanging.add(`${folder}/b.yaml`);
  await using harness = await run(t, { files });
  await harness.advance(10_000);
  assert.deepEqual(harness.names(), ['a-node-a', 'c-node-a']);
  assert.deepEqual(harness.problems(), [
    `${folder}/b.yaml: cannot be read: Cannot read the manifest within 5000 ms`,
  ]);
  await harness.advance(120_000);
  assert.equal(files.reads.filter((path) => path === `${folder}/b.yaml`).length, 1);
  assert.equal(harness.problems().length, 1);
});

test('reports once that an HTTP body is too complex to parse, and keeps the pods', async (t) => {
  let body = podManifest('a');
  await using harness = await run(t, { get: () => body });
  body = heavy;
  await harness.advance(100_000);
  assert.deepEqual([harness.names(), harness.sets.length], [['a-node-a'], 1]);
  assert.match(
    harness.problems().join(),
    /^http:\/\/example\.com\/pods:\d+:\d+: must have at most \d+ words/,
  );
  assert.deepEqual([harness.parser.callCount(), harness.problems().length], [1, 1]);
});
