import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryManifestFiles } from '../../../test/fakes/memory-source-files.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { JsonObject } from '../../api/index.ts';
import { collectLogs, untilAborted } from '../../lib/index.ts';
import { ManifestObjects, type ObjectStoreAccess } from './manifest-objects.ts';

const { signal } = new AbortController();

class Kept implements ObjectStoreAccess {
  readonly objects = new Map<string, string>();
  refused = '';
  kept = '';
  room = Number.POSITIVE_INFINITY;

  apply(object: JsonObject, file: string): void {
    const name = this.nameOf(object);
    if (name === this.refused) throw new Error('it is not to be');
    this.objects.set(name, `${file} ${JSON.stringify(object['data'] ?? {})}`);
  }

  applied(): readonly string[] {
    return [...this.objects.keys()];
  }

  remove(name: string): void {
    if (name === this.kept) throw new Error('it is held');
    this.objects.delete(name);
  }

  async whenAcceptingWrites(inner: AbortSignal): Promise<void> {
    if (this.objects.size >= this.room) await untilAborted(inner);
  }

  nameOf(object: JsonObject): string {
    const { name } = (object['metadata'] ?? {}) as JsonObject;
    if (name === undefined) throw new Error('metadata.name must be a name');
    return `${object['kind']}/${name}`;
  }
}

function scene() {
  const clock = new VirtualClock();
  const files = new MemoryManifestFiles();
  files.makeDirectory('/manifests');
  const keeper = new Kept();
  const { logger, records } = collectLogs(clock);
  const objects = new ManifestObjects({ directory: '/manifests', files, keeper, clock, logger });
  return { clock, files, keeper, objects, records };
}

const words = (data: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: words}\ndata: {a: ${data}}\n`;

test('what lies beside pods is applied, changed and removed with its file', async () => {
  const { files, keeper, objects } = scene();
  files.write('/manifests/words.yaml', `${words('b')}---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n`);
  files.write('/manifests/.hidden.yaml', words('x'));
  await objects.look(signal);
  assert.deepEqual([...keeper.objects], [['ConfigMap/words', 'words.yaml {"a":"b"}']]);
  files.write('/manifests/words.yaml', words('c'));
  await objects.look(signal);
  assert.deepEqual([...keeper.objects], [['ConfigMap/words', 'words.yaml {"a":"c"}']]);
  files.remove('/manifests/words.yaml');
  await objects.look(signal);
  assert.deepEqual([...keeper.objects], []);
});

test('while a file cannot be read nothing is removed', async () => {
  const { files, keeper, objects } = scene();
  files.write('/manifests/words.yaml', words('b'));
  await objects.look(signal);
  files.write('/manifests/words.yaml', 'a: [');
  await objects.look(signal);
  assert.equal(keeper.objects.size, 1);
});

test('what is refused is told once, and the others are applied', async () => {
  const { files, keeper, objects, records } = scene();
  files.write('/manifests/a.yaml', words('b'));
  files.write('/manifests/b.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n');
  keeper.refused = 'ConfigMap/words';
  await objects.look(signal);
  await objects.look(signal);
  assert.deepEqual([...keeper.objects.keys()], ['Secret/s']);
  const told = records.toArray().filter(({ message }) => message === 'Cannot use a manifest');
  assert.equal(told.length, 1);
});

/** What was told to be wrong with manifests. */
function problemsIn(records: ReturnType<typeof scene>['records']): readonly unknown[] {
  return records
    .toArray()
    .filter(({ message }) => message === 'Cannot use a manifest')
    .map(({ fields }) => fields['problem']);
}

test('an object without a name is told with its file; the others are applied, and nothing is removed', async () => {
  const { files, keeper, objects, records } = scene();
  files.write('/manifests/a.yaml', words('b'));
  await objects.look(signal);
  files.write('/manifests/a.yaml', 'apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n');
  files.write('/manifests/b.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n');
  await objects.look(signal);
  assert.deepEqual([...keeper.objects.keys()], ['ConfigMap/words', 'Secret/s']);
  assert.deepEqual(problemsIn(records), ['/manifests/a.yaml: metadata.name must be a name']);
});

test('what cannot be removed is told, and the others are', async () => {
  const { files, keeper, objects, records } = scene();
  files.write('/manifests/a.yaml', words('b'));
  files.write('/manifests/b.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n');
  await objects.look(signal);
  keeper.kept = 'ConfigMap/words';
  files.remove('/manifests/a.yaml');
  files.remove('/manifests/b.yaml');
  await objects.look(signal);
  assert.deepEqual([...keeper.objects.keys()], ['ConfigMap/words']);
  assert.deepEqual(problemsIn(records), ['/manifests: removing ConfigMap/words: it is held']);
});

test('nothing is handed over while the store has no room, and the rest follows at a later look', async () => {
  const { clock, files, keeper, objects, records } = scene();
  for (const name of ['a', 'b', 'c']) files.write(`/manifests/${name}.yaml`, secret(name));
  keeper.room = 2;
  const looking = objects.look(signal);
  await clock.advance(10_000);
  await looking;
  assert.deepEqual([...keeper.objects.keys()], ['Secret/a', 'Secret/b']);
  assert.deepEqual(problemsIn(records), ['/manifests: Cannot hand over more to the store within 10000 ms']);
  keeper.room = 4;
  await objects.look(signal);
  assert.deepEqual([...keeper.objects.keys()], ['Secret/a', 'Secret/b', 'Secret/c']);
});

test('more than fits into memory is not read; what came before is applied, and nothing is removed', async () => {
  const { files, keeper, objects, records } = scene();
  files.write('/manifests/early.yaml', secret('early'));
  await objects.look(signal);
  files.remove('/manifests/early.yaml');
  // In documents short enough for the parser.
  const filler = `# ${'x'.repeat(2.25 * 2 ** 20)}\n---\n`.repeat(4);
  for (const name of ['1', '2', '3', '4', '5', '6', '7', '8'])
    files.write(`/manifests/${name}.yaml`, filler + secret(`s${name}`));
  await objects.look(signal);
  const early = ['Secret/early'];
  const fitting = ['1', '2', '3', '4', '5', '6', '7'].map((name) => `Secret/s${name}`);
  assert.deepEqual([...keeper.objects.keys()], [...early, ...fitting]);
  assert.deepEqual(problemsIn(records), [
    '/manifests: all manifests together must have at most 67108864 bytes: objects in 8.yaml and in what comes after it are not read',
  ]);
});

function secret(name: string): string {
  return `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}}\n`;
}
