import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalApiRig, refusedWith } from '../../../test/fakes/local-api-rig.ts';
import { apiResources } from '../../api/index.ts';
import { listBody } from '../api/responses.ts';

const { configMaps, leases, pods } = apiResources;

async function withMaps(...names: readonly string[]): Promise<LocalApiRig> {
  const harness = new LocalApiRig({ historyLimit: 6 });
  for (const name of names) await harness.configMap(name);
  return harness;
}

test('names the group in a NotFound error', async () => {
  using harness = new LocalApiRig();
  const status = await refusedWith(harness.ask('get', pods, { name: 'x' }), 404, 'pods "x" not found');
  assert.deepEqual(status.details, { name: 'x', kind: 'pods' });
  const other = await refusedWith(
    harness.ask('get', leases, { name: 'x' }),
    404,
    'leases.coordination.k8s.io "x" not found',
  );
  assert.deepEqual(other.details, { name: 'x', group: 'coordination.k8s.io', kind: 'leases' });
});

test('returns a list with the resource version of the read, and an empty items list if there are no objects', async () => {
  using harness = await withMaps('b', 'a');
  const list = await harness.list(configMaps);
  assert.deepEqual(
    [list.kind, list.apiVersion, list.metadata],
    ['ConfigMapList', 'v1', { resourceVersion: String(harness.store.version) }],
  );
  assert.deepEqual(await harness.names(configMaps), ['a', 'b']);
  const [first] = listBody(list)['items'] as readonly object[];
  assert.deepEqual(Object.keys(first ?? {}), ['metadata']);
  assert.deepEqual((await harness.list(configMaps, { namespace: 'none' })).items, []);
});

test('continues a list with tokens at one version', async () => {
  using harness = await withMaps('a', 'b', 'c', 'd', 'e');
  const first = await harness.list(configMaps, { query: { limit: '2' } });
  const token = first.metadata.continue ?? '';
  assert.deepEqual(JSON.parse(Buffer.from(token, 'base64url').toString()), {
    v: 'meta.k8s.io/v1',
    rv: Number(first.metadata.resourceVersion),
    start: 'b\0',
  });
  assert.equal(first.metadata.remainingItemCount, 3);
  await harness.ask('delete', configMaps, { name: 'c' });
  await harness.configMap('bb');
  const second = await harness.list(configMaps, { query: { limit: '2', continue: token } });
  assert.deepEqual(
    second.items.map((item) => (item['metadata'] as { name: string }).name),
    ['c', 'd'],
  );
  assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
  const rest = { limit: '2', continue: second.metadata.continue ?? '' };
  const third = await harness.list(configMaps, { query: rest });
  assert.deepEqual([third.items.length, third.metadata.continue], [1, undefined]);
  const all = await harness.list(configMaps, { namespace: undefined, query: { limit: '1' } });
  const start = JSON.parse(Buffer.from(all.metadata.continue ?? '', 'base64url').toString()) as object;
  assert.equal((start as { start: string }).start, 'default/a\0');
});

test('returns remainingItemCount only without selectors', async () => {
  using harness = await withMaps('a', 'b', 'c');
  const selected = await harness.list(configMaps, { query: { limit: '1', labelSelector: '!x' } });
  assert.equal(selected.metadata.remainingItemCount, undefined);
  assert.ok(selected.metadata.continue);
  const last = await harness.list(configMaps, { query: { limit: '1', fieldSelector: 'metadata.name=c' } });
  assert.equal(last.metadata.continue, undefined);
});

test('returns a new continue token for an expired one, which continues at the current version', async () => {
  using harness = await withMaps('a', 'b', 'c');
  const { metadata } = await harness.list(configMaps, { query: { limit: '1' } });
  for (let i = 0; i < 8; i++) await harness.configMap(`d${i}`);
  const query = { limit: '2', continue: metadata.continue ?? '' };
  const status = await refusedWith(harness.ask('list', configMaps, { query }), 410);
  assert.equal(status.reason, 'Expired');
  assert.match(status.message, /^The provided continue parameter is too old/);
  const again = { limit: '2', continue: status.next?.continue ?? '' };
  assert.deepEqual(await harness.names(configMaps, { query: again }), ['b', 'c']);
});

test('rejects a malformed continue token', async () => {
  using harness = await withMaps('a');
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  for (const token of [
    'nonsense',
    encoded(null),
    encoded({ v: 'x', rv: 1, start: 'a' }),
    encoded({ v: 'meta.k8s.io/v1', rv: 0, start: 'a' }),
    encoded({ v: 'meta.k8s.io/v1', rv: 1, start: '' }),
    encoded({ v: 'meta.k8s.io/v1', rv: 1, start: '../x' }),
  ])
    await refusedWith(harness.ask('list', configMaps, { query: { continue: token } }), 400);
  const future = encoded({ v: 'meta.k8s.io/v1', rv: 999, start: 'a' });
  await refusedWith(harness.ask('list', configMaps, { query: { continue: future } }), 504);
  const both = { continue: encoded({ v: 'meta.k8s.io/v1', rv: 2, start: 'a' }), resourceVersion: '2' };
  await refusedWith(harness.ask('list', configMaps, { query: both }), 400);
});

test('lists at exactly the given resource version, at a version not older than the given one, or at any version', async () => {
  using harness = await withMaps('a', 'b');
  const then = String(harness.store.version);
  await harness.configMap('c');
  const names = (query: Record<string, string>) => harness.names(configMaps, { query });
  assert.deepEqual(await names({ resourceVersion: then }), ['a', 'b', 'c']);
  assert.deepEqual(await names({ resourceVersion: then, limit: '5' }), ['a', 'b']);
  assert.deepEqual(await names({ resourceVersion: then, resourceVersionMatch: 'Exact' }), ['a', 'b']);
  const notOlder = { resourceVersion: then, resourceVersionMatch: 'NotOlderThan', limit: '9' };
  assert.deepEqual(await names(notOlder), ['a', 'b', 'c']);
  assert.deepEqual(await names({ resourceVersion: '0', limit: '1' }), ['a', 'b', 'c']);
  for (let i = 0; i < 8; i++) await harness.configMap(`d${i}`);
  await refusedWith(
    harness.ask('list', configMaps, { query: { resourceVersion: then, resourceVersionMatch: 'Exact' } }),
    410,
    'The resourceVersion for the provided list is too old.',
  );
});

test('rejects a resource version above the current one', async () => {
  using harness = await withMaps('a');
  for (const verb of ['get', 'list'] as const) {
    const requested = harness.ask(verb, configMaps, { name: 'a', query: { resourceVersion: '999' } });
    const { reason, message, details } = await refusedWith(requested, 504);
    assert.equal(reason, 'Timeout');
    assert.equal(message, `Timeout: Too large resource version: 999, current: ${harness.store.version}`);
    assert.deepEqual(details, {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    });
  }
});

test('rejects conflicting list options with all causes', async () => {
  using harness = await withMaps('a');
  const refused = async (query: Record<string, string>, code: number) =>
    (await refusedWith(harness.ask('list', configMaps, { query }), code)).message;
  assert.equal(
    await refused({ resourceVersionMatch: 'Exact' }, 422),
    'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
  );
  assert.match(
    await refused({ resourceVersionMatch: 'Exact', resourceVersion: '0' }, 422),
    /"exact" is forbidden/,
  );
  assert.match(
    await refused({ resourceVersionMatch: 'x', continue: 'y' }, 422),
    /^\S+ "" is invalid: \[.*, .*, .*\]$/,
  );
  assert.match(await refused({ sendInitialEvents: 'true' }, 422), /forbidden for list/);
  assert.match(await refused({ limit: 'x' }, 400), /parsing "x"/);
  assert.match(await refused({ resourceVersion: 'x' }, 400), /Invalid value: "x"/);
});
