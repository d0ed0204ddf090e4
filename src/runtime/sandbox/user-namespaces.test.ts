import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapFileStore, memoryRuntimeFiles } from '../../../test/fakes/memory-runtime-files.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, KubelingError } from '../../lib/index.ts';
import { podUid } from '../../pods/index.ts';
import { UserNamespaces } from './user-namespaces.ts';

const one = podUid('11111111-1111-1111-1111-111111111111');
const two = podUid('22222222-2222-2222-2222-222222222222');
const three = podUid('33333333-3333-3333-3333-333333333333');

function createHarness(idsPerPod = 65_536, store = mapFileStore()) {
  const files = memoryRuntimeFiles(store);
  const logs = collectLogs(new VirtualClock());
  const users = new UserNamespaces({ files, logger: logs.logger, podsDir: '/pods', idsPerPod });
  return { users, store, files, logs };
}
const firstOf = async (users: UserNamespaces, uid: ReturnType<typeof podUid>) =>
  (await users.of(uid)).uids?.[0]?.hostId;
const file = (hostId: number, length = 65_536) => {
  const mapping = { hostId, containerId: 0, length };
  return JSON.stringify({ uidMappings: [mapping], gidMappings: [mapping] });
};

test("each pod gets a separate id range, persisted in the Go kubelet's format", async () => {
  const { users, store } = createHarness();
  assert.deepEqual(await users.of(one), {
    mode: 'POD',
    uids: [{ hostId: 65_536, containerId: 0, length: 65_536 }],
    gids: [{ hostId: 65_536, containerId: 0, length: 65_536 }],
  });
  assert.equal(
    store.read(`/pods/${one}/userns`),
    '{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}',
  );
  assert.equal(await firstOf(users, two), 131_072);
  assert.equal(await firstOf(users, one), 65_536);
});

test('a restarted kubelet restores id ranges and allocates none of them again', async () => {
  const { users, store } = createHarness();
  await users.of(one);
  await users.of(two);
  await users.release(one);
  assert.equal(store.read(`/pods/${one}/userns`), undefined);
  const { users: next } = createHarness(65_536, store);
  await next.restore();
  assert.equal(await firstOf(next, two), 131_072);
  assert.equal(await firstOf(next, three), 65_536);
  assert.equal(await firstOf(next, one), 196_608);
});

test('restored id ranges of another size are kept, and new ranges do not overlap them', async () => {
  const { users, store } = createHarness(131_072);
  store.write(`/pods/${one}/userns`, file(196_608));
  await users.restore();
  assert.equal(await firstOf(users, one), 196_608);
  assert.equal(await firstOf(users, two), 262_144);
});

test('an invalid user namespace file fails only its own pod', async () => {
  for (const [text, says] of [
    ['{', /JSON/],
    ['{}', /one mapping of user ids/],
    [file(0), /must start at a multiple of 65536/],
    [file(65_537), /must start at a multiple of 65536/],
    [file(4_294_901_760, 131_072), /must start at a multiple of 65536/],
    [file(65_536).replace('"containerId":0', '"containerId":1'), /mappings must be equal/],
    [file(65_536).replaceAll('"containerId":0', '"containerId":1'), /root must be mapped/],
  ] as const) {
    const { users, store, logs } = createHarness();
    store.write(`/pods/${one}/userns`, text);
    await users.restore();
    await assert.rejects(users.of(one), (error) => {
      assert.ok(error instanceof KubelingError && error.code === 'SANDBOX_CONFIG');
      return says.test(error.message);
    });
    assert.equal([...logs.records].length, 1);
    assert.equal(await firstOf(users, two), 65_536);
  }
});

test('of two pods with the same persisted id range the second one fails', async () => {
  const { users, store } = createHarness();
  store.write(`/pods/${one}/userns`, file(65_536));
  store.write(`/pods/${two}/userns`, file(65_536));
  await users.restore();
  assert.equal(await firstOf(users, one), 65_536);
  await assert.rejects(users.of(two), /overlap with another pod/);
});

test('an id range is not allocated when its file cannot be written', async () => {
  const { users, files } = createHarness();
  files.replace = () => Promise.reject(new Error('disk full'));
  await assert.rejects(users.of(one), { message: 'create user namespace: disk full' });
  assert.equal(users.size, 0);
});

test('fails with a clear error when no id range is left', async () => {
  const { users } = createHarness(2 ** 31);
  await users.of(one);
  await assert.rejects(users.of(two), {
    message: 'create user namespace: could not find an empty slot to allocate a user namespace',
  });
});

test('allocates id ranges from the configured range', async () => {
  const { files, logs } = createHarness();
  const ids = { first: 655_360, length: 131_072 };
  const users = new UserNamespaces({ files, logger: logs.logger, podsDir: '/pods', idsPerPod: 65_536, ids });
  assert.deepEqual([await firstOf(users, one), await firstOf(users, two)], [655_360, 720_896]);
  await assert.rejects(users.of(three), /could not find an empty slot/);
});

test('releases the id ranges of deleted pods', async () => {
  const { users } = createHarness();
  await users.of(one);
  await users.of(two);
  users.retain((uid) => uid === two);
  assert.equal(users.size, 1);
  assert.equal(await firstOf(users, three), 65_536);
});

test("id ranges of pods never overlap those of the machine's users, which are read for each allocation", async () => {
  const { files, logs } = createHarness();
  let foreignIds = [{ first: 100_000, length: 65_536 }];
  const deps = { files, logger: logs.logger, podsDir: '/pods', idsPerPod: 65_536 };
  const users = new UserNamespaces({ ...deps, foreignIds: async () => foreignIds });
  // The ranges at 65,536 and 131,072 overlap the ids of users, so the next one is allocated.
  assert.equal(await firstOf(users, one), 196_608);
  foreignIds = [
    { first: 300_000, length: 10 },
    { first: 0, length: 200_000 },
    { first: 200_000, length: 1 },
  ];
  assert.deepEqual(await Promise.all([firstOf(users, two), firstOf(users, two)]), [327_680, 327_680]);
});
