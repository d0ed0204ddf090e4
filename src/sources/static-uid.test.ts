import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import fc from 'fast-check';
import { readYaml } from '../lib/index.ts';
import { canonicalJson, type ManifestPlace, staticPodUid } from './static-uid.ts';

const place: ManifestPlace = {
  source: 'file',
  path: '/etc/kubernetes/manifests/web.yaml',
  nodeName: 'node-a',
};

async function uidOf(text: string, where = place): Promise<string> {
  const { tree } = await readYaml(text);
  assert.ok(tree);
  return staticPodUid(tree, where);
}

/** Never change these: a UID that changes with a new version restarts every static pod of every node. */
const golden: readonly (readonly [string, string, ManifestPlace])[] = [
  [
    'e62e670acd4b681b1a75e1b64ff6fdbd',
    'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: b}]}\n',
    place,
  ],
  ['2044da83ba939be8aabd2fabfc755a77', 'metadata: {name: web}', { ...place, nodeName: 'node-b' }],
  [
    '46a4fedec3e8f43b68e9b418f6b37305',
    '{"metadata": {"name": "web"}}',
    { source: 'http', path: 'http://example.com/pods', nodeName: 'node-a' },
  ],
  [
    '0e423be9dd45cbe11bd7270660cb2b18',
    'metadata: {name: web, n: 0644, f: 1.5, t: yes, s: "ünï", l: [1, ~, {b: 2, a: 1}], big: 9007199254740993}',
    place,
  ],
];

for (const [expected, text, where] of golden)
  test(`the UID of ${JSON.stringify(text.slice(0, 40))} on ${where.nodeName} never changes`, async () => {
    const uid = await uidOf(text, where);
    assert.match(uid, /^[0-9a-f]{32}$/);
    assert.equal(uid, expected);
  });

test('the example manifest keeps its UID', async () => {
  const text = await readFile(new URL('../../examples/web.yaml', import.meta.url), 'utf8');
  assert.equal(await uidOf(text), 'd1f9160857aa672c25761ed7d88e9dde');
});

test('comments, layout, the order of keys, JSON or YAML, and nulls do not matter', async () => {
  const plain = await uidOf('metadata: {name: web, labels: {a: b, c: d}}\nspec: {containers: []}\n');
  for (const same of [
    '# a comment\nspec:\n  containers: []\nmetadata:\n  labels: # another\n    c: d\n    a: "b"\n  name: web\n',
    '{"spec":{"containers":[]},"metadata":{"labels":{"c":"d","a":"b"},"name":"web"}}',
    'metadata: {name: web, creationTimestamp: null, labels: {a: b, c: d}}\nspec: {containers: []}\nstatus: ~\n',
    'metadata: {name: web, labels: {a: b, c: d}}\r\nspec: {containers: []}\r\n',
  ])
    assert.equal(await uidOf(same), plain, same);
});

test('path, node, source and any value matter', async () => {
  const text = 'metadata: {name: web}';
  const all = [
    await uidOf(text),
    await uidOf(text, { ...place, path: '/other.yaml' }),
    await uidOf(text, { ...place, nodeName: 'node-b' }),
    await uidOf(text, { ...place, source: 'http' }),
    await uidOf('metadata: {name: "1"}'),
    await uidOf('metadata: {name: 1}'),
    await uidOf('metadata: {name: [1]}'),
  ];
  assert.equal(new Set(all).size, all.length);
});

test('any JSON object has one canonical form, whatever the order of its keys', async () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, part]) => [key, shuffled(part)]),
    );
  };
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (value) => {
      const one = await readYaml(JSON.stringify(value));
      const other = await readYaml(JSON.stringify(shuffled(value), null, 2));
      // Some texts are JSON but not YAML; whoever writes those gets an error, never a UID.
      if (one.tree === undefined || other.tree === undefined) return;
      assert.equal(canonicalJson(one.tree), canonicalJson(other.tree));
    }),
  );
});
