import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeTree, KindTable, type PodSpec, type Pod as WrittenPod } from '../../kinds/index.ts';
import { readYaml } from '../../lib/index.ts';
import { withPodDefaults } from '../../pods/defaults/index.ts';
import type { ManifestOrigin } from '../manifest-origin.ts';
import { jsonName } from './dump.ts';
import { podTypes } from './internal-pod-types.ts';
import { addHeld, dumpQuantity, heldToMilli, holdQuantity, maxHeld } from './internal-quantity.ts';
import { fnv1a128, StaticUidGenerator } from './static-uid.ts';

const place: ManifestOrigin = {
  source: 'file',
  path: '/etc/kubernetes/manifests/web.yaml',
  nodeName: 'node-a',
};
const kinds = new KindTable();
const uids = new StaticUidGenerator();

async function read(text: string) {
  const { tree } = await readYaml(text);
  assert.ok(tree);
  const { value } = decodeTree<WrittenPod & { spec: PodSpec }>(kinds, 'Pod', tree);
  return { pod: withPodDefaults(value, () => true), tree };
}

async function uidOf(text: string, where = place): Promise<string> {
  const { pod, tree } = await read(text);
  return uids.uidOf(pod, tree, where);
}

async function dumpOf(text: string): Promise<string> {
  const { pod, tree } = await read(text);
  return uids.dump(pod, tree);
}

test('manifests that differ in content, node or source get different 128-bit UIDs', async () => {
  const text = 'metadata: {name: web}';
  const all = [
    await uidOf(text),
    await uidOf(text, { ...place, path: '/other.yaml' }),
    await uidOf(text, { ...place, nodeName: 'node-b' }),
    await uidOf(text, { ...place, source: 'http' }),
    await uidOf('metadata: {name: "1"}'),
    await uidOf('metadata: {name: web, labels: {}}'),
    await uidOf('metadata: {name: web}\nspec: {containers: []}'),
  ];
  for (const uid of all) assert.match(uid, /^[0-9a-f]{32}$/);
  assert.equal(new Set(all).size, all.length);
});

test('the UID of a pod from a URL does not depend on the node', async () => {
  const http = { source: 'http', path: 'http://example.com/pods', nodeName: 'node-a' } as const;
  assert.equal(
    await uidOf('metadata: {name: web}', http),
    await uidOf('metadata: {name: web}', { ...http, nodeName: 'b' }),
  );
});

test('the UID ignores comments, layout, key order, nulls, unknown fields, and whether the manifest is JSON or YAML', async () => {
  const plain = await uidOf('metadata: {name: web, labels: {a: b, c: d}}\nspec: {containers: []}\n');
  for (const same of [
    '# a comment\nspec:\n  containers: []\nmetadata:\n  labels: # another\n    c: d\n    a: "b"\n  name: web\n',
    '{"spec":{"containers":[]},"metadata":{"labels":{"c":"d","a":"b"},"name":"web"}}',
    'metadata: {name: web, creationTimestamp: null, labels: {a: b, c: d}}\nspec: {containers: []}\nstatus: ~\n',
    'metadata: {name: web, labels: {a: b, c: d}}\r\nspec: {containers: [], nope: 1, dnsPolicy: ClusterFirst}\r\n',
    'metadata: {name: web, labels: {a: x, a: b, c: d}}\nspec: {containers: []}\n',
  ])
    assert.equal(await uidOf(same), plain, same);
});

test('the UID distinguishes empty from missing lists, maps and objects', async () => {
  const shown = await dumpOf(
    'spec: {containers: [{args: [], resources: {limits: {}}, securityContext: {}}]}',
  );
  for (const part of ['Args:([]string)[]', 'Command:([]string)<nil>', 'Limits:(core.ResourceList)map[]'])
    assert.ok(shown.includes(part), part);
  assert.ok(shown.includes('Requests:(core.ResourceList)map[]'));
  assert.match(
    shown,
    /ImagePullPolicy:\(core\.PullPolicy\)IfNotPresent SecurityContext:\(\*core\.SecurityContext\)\{Cap/,
  );
  assert.ok((await dumpOf('metadata: {name: a}')).includes('Containers:([]core.Container)<nil>'));
});

test('the UID treats a missing required object as nil', async () => {
  const shown = await dumpOf('spec: {volumes: [{name: a, scaleIO: {gateway: g}}]}');
  assert.ok(shown.includes('SecretRef:(*core.LocalObjectReference)<nil>'));
});

test('the dump sorts map keys by their bytes', async () => {
  const shown = await dumpOf('metadata: {annotations: {"😀": e, "\ufb01": d, b: c, B: a}}');
  assert.ok(shown.includes('Annotations:(map[string]string)map[B:a b:c \ufb01:d 😀:e]'));
});

test('the dump shows times in the time zone UTC', async () => {
  const shown = await dumpOf('metadata: {creationTimestamp: "2024-01-02T05:04:05.25+02:00"}');
  assert.ok(
    shown.includes('wall:(uint64)250000000 ext:(int64)63839761445 loc:(*time.Location){name:(string)Local'),
  );
});

/**
 * Expected dumps of quantities by their spelling: value, scale, decimal with its scale, cached
 * spelling and format, as in the Go kubelet.
 */
const quantities: Readonly<Record<string, string>> = {
  '0': '0 0 - "0" DecimalSI',
  '00': '0 0 - "" DecimalSI',
  '0.0': '0 -1 - "" DecimalSI',
  '0m': '0 -3 - "" DecimalSI',
  '100m': '100 -3 - "100m" DecimalSI',
  '1000m': '1000 -3 - "" DecimalSI',
  '+1': '1 0 - "+1" DecimalSI',
  '-1.5': '-15 -1 - "" DecimalSI',
  '1e3': '1 3 - "1e3" DecimalExponent',
  '1E': '1 18 - "1E" DecimalSI',
  '64Mi': '67108864 0 - "" BinarySI',
  '3Mi': '3145728 0 - "3Mi" BinarySI',
  '0.5Gi': '0 0 536870912000000000/9 "" BinarySI',
  '0.5': '5 -1 - "" DecimalSI',
  '16Ei': '0 0 9223372036854775807/0 "" BinarySI',
  '0.0001Ki': '0 0 102400000/9 "" DecimalSI',
  '12345678901234567890': '0 0 12345678901234567890000000000/9 "" DecimalSI',
  '1.0000000001': '0 0 1000000001/9 "" DecimalSI',
};

test('the UID distinguishes different spellings of the same quantity', () => {
  for (const [text, expected] of Object.entries(quantities)) {
    const { value, scale, decimal, spelling, format } = holdQuantity(text);
    const held = decimal === undefined ? '-' : `${decimal.unscaled}/${decimal.scale}`;
    assert.equal(`${value} ${scale} ${held} ${JSON.stringify(spelling)} ${format}`, expected, text);
  }
});

test('the dump rounds quantities in resource lists up to thousandths', () => {
  assert.deepEqual(heldToMilli(holdQuantity('100u')), { ...holdQuantity('0m'), value: 1n });
  assert.deepEqual(heldToMilli(holdQuantity('-1500u')).value, -2n);
  assert.equal(heldToMilli(holdQuantity('100m')).spelling, '100m');
  assert.deepEqual(heldToMilli(holdQuantity('0.5Gi')).decimal, { unscaled: 536870912000n, scale: 3 });
});

test('adds quantities at the finer scale, or with arbitrary precision when 64 bits do not suffice', () => {
  const sum = addHeld(holdQuantity('1'), holdQuantity('500m'));
  assert.deepEqual([sum.value, sum.scale, sum.spelling], [1500n, -3, '']);
  assert.equal(addHeld(holdQuantity('0'), holdQuantity('1Ki')).format, 'BinarySI');
  const large = addHeld(holdQuantity('9e18'), holdQuantity('1m'));
  assert.deepEqual(large.decimal, { unscaled: 9_000_000_000_000_000_000_001n, scale: 3 });
  assert.deepEqual(maxHeld(holdQuantity('1'), holdQuantity('1000m')), holdQuantity('1'));
  assert.deepEqual(maxHeld(holdQuantity('0.5Gi'), holdQuantity('1Gi')).decimal, {
    unscaled: 2n ** 30n,
    scale: 0,
  });
});

test('the dump shows a number of more than 64 bits as a list of 64-bit words', () => {
  const shown = dumpQuantity(holdQuantity('-12345678901234567890'));
  assert.ok(shown.includes('neg:(bool)true abs:(big.nat)[5097733592002180096 669260594]'), shown);
});

test('hashes texts with 128-bit FNV-1a', () => {
  const slow = (bytes: Uint8Array) => {
    let hash = 0x6c62272e07bb014262b821756295c58dn;
    for (const byte of bytes) hash = BigInt.asUintN(128, (hash ^ BigInt(byte)) * (2n ** 88n + 0x13bn));
    return hash.toString(16).padStart(32, '0');
  };
  assert.equal(fnv1a128(Buffer.from('')), '6c62272e07bb014262b821756295c58d');
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => assert.equal(fnv1a128(bytes), slow(bytes))),
  );
});

test('the table of internal types defines the type of every field', () => {
  const moved = new Set(['hostNetwork', 'hostPID', 'hostIPC', 'shareProcessNamespace', 'hostUsers']);
  const elsewhere = new Set([...moved, 'serviceAccount', 'podIP', 'kind', 'apiVersion']);
  for (const line of podTypes.trim().split('\n')) {
    const [type = '', ...fields] = line.split(' ');
    const kind = type.replace(/^\w+\./, '');
    if (kind === 'TypeMeta') continue;
    const inlined = fields.flatMap((field) =>
      field.endsWith('^') ? [...kinds.fieldsOf(field.slice(0, -1)).keys()] : [],
    );
    const own = fields
      .filter((field) => !field.includes('^'))
      .map((field) => /=(\w+)/.exec(field)?.[1] ?? jsonName(field.replace(/:.*/, '')));
    const known = [...kinds.fieldsOf(kind).keys()].filter(
      (name) => !elsewhere.has(name) || own.includes(name),
    );
    const named = [...own, ...inlined].filter((name) => kind !== 'PodSecurityContext' || !moved.has(name));
    assert.deepEqual(named.sort(), known.sort(), kind);
  }
});
