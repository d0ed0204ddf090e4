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
    if (name === this.refused) throw new Error('the API rejects this object');
    this.objects.set(name, `${file} ${JSON.stringify(object['data'] ?? {})}`);
  }

  applied(): readonly string[] {
    return [...this.objects.keys()];
  }

  remove(name: string): void {
    if (name === this.kept) throw new Error('it has finalizers');
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

test('creates, changes and removes API objects with their manifest file', async () => {
  const { files, keeper, objects } = scene();
  files.write('/manifests/words.yaml', `${words('b')}---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n`);
  files.write('/manifests/.hidden.yaml', words('x'));
  await objects.scanOnce(signal);
  assert.deepEqual([...keeper.objects], [['ConfigMap/words', 'words.yaml {"a":"b"}']]);
  files.write('/manifests/words.yaml', words('c'));
  await objects.scanOnce(signal);
  assert.deepEqual([...keeper.objects], [['ConfigMap/words', 'words.yaml {"a":"c"}']]);
  files.remove('/manifests/words.yaml');
  await objects.scanOnce(signal);
  assert.deepEqual([...keeper.objects], []);
});

test('removes no API objects while a manifest file cannot be read', async () => {
  const { files, keeper, objects } = scene();
  files.write('/manifests/words.yaml', words('b'));
  await objects.scanOnce(signal);
  files.write('/manifests/words.yaml', 'a: [');
  await objects.scanOnce(signal);
  assert.equal(keeper.objects.size, 1);
});

test('reports a rejected object once, and applies the other objects', async () => {
  const { files, keeper, objects, records } = scene();
  files.write('/manifests/a.yaml', words('b'));
  files.write('/manifests/b.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n');
  keeper.refused = 'ConfigMap/words';
  await objects.scanOnce(signal);
  await objects.scanOnce(signal);
  assert.deepEqual([...keeper.objects.keys()], ['Secret/s']);
  const reported = records.toArray().filter(({ message }) => message === 'Failed to apply manifest');
  assert.equal(reported.length, 1);
});

/** Returns the problems of manifests that were logged. */
function problemsIn(records: ReturnType<typeof scene>['records']): readonly unknown[] {
  return records
    .toArray()
    .filter(({ message }) => message === 'Failed to apply manifest')
    .map(({ fields }) => fields['problem']);
}

test('reports an object without a name with its file, applies the other objects, and removes none', async () => {
  const { files, keeper, objects, records } = scene();
  files.write('/manifests/a.yaml', words('b'));
  await objects.scanOnce(signal);
  files.write('/manifests/a.yaml', 'apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n');
  files.write('/manifests/b.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n');
  await objects.scanOnce(signal);
  assert.deepEqual([...keeper.objects.keys()], ['ConfigMap/words', 'Secret/s']);
  assert.deepEqual(problemsIn(records), ['/manifests/a.yaml: metadata.name must be a name']);
});

test('reports an object that cannot be removed, and removes the other objects', async () => {
  const { files, keeper, objects, records } = scene();
  files.write('/manifests/a.yaml', words('b'));
  files.write('/manifests/b.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n');
  await objects.scanOnce(signal);
  keeper.kept = 'ConfigMap/words';
  files.remove('/manifests/a.yaml');
  files.remove('/manifests/b.yaml');
  await objects.scanOnce(signal);
  assert.deepEqual([...keeper.objects.keys()], ['ConfigMap/words']);
  assert.deepEqual(problemsIn(records), ['/manifests: removing ConfigMap/words: it has finalizers']);
});

test('applies nothing while the store is full, and the remaining objects in a later scan', async () => {
  const { clock, files, keeper, objects, records } = scene();
  for (const name of ['a', 'b', 'c']) files.write(`/manifests/${name}.yaml`, secret(name));
  keeper.room = 2;
  const looking = objects.scanOnce(signal);
  await clock.advance(10_000);
  await looking;
  assert.deepEqual([...keeper.objects.keys()], ['Secret/a', 'Secret/b']);
  assert.deepEqual(problemsIn(records), ['/manifests: Cannot write more to the store within 10000 ms']);
  keeper.room = 4;
  await objects.scanOnce(signal);
  assert.deepEqual([...keeper.objects.keys()], ['Secret/a', 'Secret/b', 'Secret/c']);
});

test('stops reading at the size limit, applies the objects read so far, and removes none', async () => {
  const { files, keeper, objects, records } = scene();
  files.write('/manifests/early.yaml', secret('early'));
  await objects.scanOnce(signal);
  files.remove('/manifests/early.yaml');
  // The text is split into several documents, each short enough for the parser.
  const filler = `# ${'x'.repeat(2.25 * 2 ** 20)}\n---\n`.repeat(4);
  for (const name of ['1', '2', '3', '4', '5', '6', '7', '8'])
    files.write(`/manifests/${name}.yaml`, filler + secret(`s${name}`));
  await objects.scanOnce(signal);
  const early = ['Secret/early'];
  const fitting = ['1', '2', '3', '4', '5', '6', '7'].map((name) => `Secret/s${name}`);
  assert.deepEqual([...keeper.objects.keys()], [...early, ...fitting]);
  assert.deepEqual(problemsIn(records), [
    '/manifests: all manifests together must have at most 67108864 bytes: objects in 8.yaml and later files are not read',
  ]);
});

function secret(name: string): string {
  return `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}}\n`;
}
