import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type PodAllocation, type PodUid, podUid } from '../../pods/index.ts';
import { decodeAllocations, encodeAllocations } from './checkpoint.ts';

/** A checkpoint file written by the Go kubelet. */
const foreign =
  '{"data":"{\\"entries\\":{\\"pod1\\":{\\"ContainerResources\\":{\\"container1\\":{\\"requests\\":{\\"cpu\\":\\"1Ki\\",\\"memory\\":\\"1Ki\\"}}}}}}","checksum":1178570812}';

test('reads a pod allocation checkpoint of the Go kubelet', () => {
  const read = decodeAllocations(foreign);
  assert.ok(read.ok);
  assert.deepEqual(
    [...read.entries],
    [['pod1', { containers: { container1: { requests: { cpu: '1Ki', memory: '1Ki' } } }, pod: undefined }]],
  );
});

test('writes a pod allocation checkpoint with the fields and checksum of the Go kubelet', () => {
  const entries = new Map<PodUid, PodAllocation>([
    [podUid('b'), { containers: {} }],
    [podUid('a'), { containers: { main: { limits: { cpu: '1' } } }, pod: { requests: { memory: '1Gi' } } }],
  ]);
  const { data, checksum } = JSON.parse(encodeAllocations(entries).text) as {
    data: string;
    checksum: number;
  };
  assert.equal(
    data,
    '{"entries":{"a":{"ContainerResources":{"main":{"limits":{"cpu":"1"}}},"PodLevelResources":{"requests":{"memory":"1Gi"}}},"b":{"ContainerResources":{},"PodLevelResources":null}}}',
  );
  assert.equal(checksum, encodeAllocations(entries).checksum);
  assert.equal(JSON.parse(encodeAllocations(new Map()).text).data, '{}');
});

test('reads back any pod allocation checkpoint it writes', () => {
  const amount = fc.constantFrom('1', '100m', '1Gi', '0', '1e3', '5Mi');
  const list = fc.dictionary(fc.constantFrom('cpu', 'memory', 'example.com/card'), amount);
  const resources = fc.record({ limits: list, requests: list }, { requiredKeys: [] });
  const uid = fc.uuid().map(podUid);
  const names = fc.constantFrom('main', 'side', 'toString');
  const allocation = fc.record({
    containers: fc.dictionary(names, resources),
    pod: fc.option(resources, { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(fc.tuple(uid, allocation)), (all) => {
      const read = decodeAllocations(encodeAllocations(new Map(all)).text);
      assert.ok(read.ok);
      assert.deepEqual(plain(read.entries), plain(new Map(all)));
    }),
  );
});

function plain(entries: ReadonlyMap<PodUid, PodAllocation>): unknown {
  return JSON.parse(JSON.stringify([...entries].toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

test('rejects a pod allocation checkpoint with any error and names the error', () => {
  const inner = (data: string) =>
    encodeAllocations(new Map()).text.replace('"data":"{}"', `"data":${JSON.stringify(data)}`);
  const why = (text: string) => {
    const read = decodeAllocations(text);
    return read.ok ? 'sound' : read.why;
  };
  assert.match(why(''), /JSON/);
  assert.match(why('[]'), /no data/);
  assert.match(why(foreign.replace('1178570812', '1')), /checksum must be 1178570812/);
  assert.match(why(inner('{"entries":{}}')), /checksum/);
  for (const entry of [
    '1',
    '{"ContainerResources":[]}',
    '{"ContainerResources":{"c":{"limits":{"cpu":"x"}}}}',
  ]) {
    const data = `{"entries":{"pod1":${entry}}}`;
    const checksum = Number(/must be (\d+)/.exec(why(inner(data)))?.[1]);
    assert.match(why(JSON.stringify({ data, checksum })), /of the pod pod1 is invalid/);
  }
  fc.assert(fc.property(fc.string(), (text) => void decodeAllocations(text)));
});
