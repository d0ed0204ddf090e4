import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foreignIdRanges, ownedUserIds } from './user-ids.ts';

const needs = { idsPerPod: 65_536, maxPods: 110 };
const range = '0: kubelet 65536 7208960\n';
const machine = (users: string | undefined, groups = users, passwd = 'root:x:0:0\nkubelet:x:998:998\n') => ({
  passwd: async () => passwd,
  getsubids: async ([flag]: readonly string[]) => (flag === '-g' ? groups : users),
});

test('returns no range on a machine without the user kubelet or the program getsubids', async () => {
  assert.equal(await ownedUserIds(machine(range, range, 'root:x:0:0\n'), needs), undefined);
  assert.equal(await ownedUserIds(machine(undefined), needs), undefined);
});

test('rejects a number of IDs per pod that exceeds the range', async () => {
  const idsPerPod = 2 ** 26;
  const alone = machine(undefined);
  assert.equal(await ownedUserIds(alone, { idsPerPod, maxPods: 63 }), undefined);
  await assert.rejects(ownedUserIds(alone, { idsPerPod, maxPods: 64 }), {
    code: 'USER_IDS',
    message: /there are enough for 63 pods; .*idsPerPod is 67108864/,
  });
});

test('uses the subordinate ID range of the user kubelet', async () => {
  assert.deepEqual(await ownedUserIds(machine(range), needs), { first: 65_536, length: 7_208_960 });
});

for (const [what, users, groups, says] of [
  ['two ranges', `${range}1: kubelet 1 2\n`, undefined, /there must be one range/],
  ['none', '', undefined, /there must be one range/],
  ['other groups', range, '0: kubelet 131072 7208960\n', /must be the same/],
  [
    'a range that starts with the IDs of the host',
    '0: kubelet 0 7208960',
    undefined,
    /first must be a multiple/,
  ],
  ['a range between blocks', '0: kubelet 65537 7208960', undefined, /first must be a multiple/],
  ['half a block', '0: kubelet 65536 7208961', undefined, /number must be a multiple/],
  ['too few', '0: kubelet 65536 65536', undefined, /for each of 110 pods/],
] as const)
  test(`rejects invalid subordinate ID ranges: ${what}`, async () => {
    await assert.rejects(ownedUserIds(machine(users, groups), needs), { code: 'USER_IDS', message: says });
  });

test('lists the subordinate IDs of all users except kubelet', async () => {
  const tables: Readonly<Record<string, string>> = {
    '/etc/subuid': 'alice:100000:65536\nkubelet:65536:7208960\n# bob:1:2\n\nbob:165536:65536',
    '/etc/subgid': '1001:300000:10\nbroken:x:y\n',
  };
  assert.deepEqual(await foreignIdRanges(async (path) => tables[path] ?? ''), [
    { first: 100_000, length: 65_536 },
    { first: 165_536, length: 65_536 },
    { first: 300_000, length: 10 },
  ]);
});
