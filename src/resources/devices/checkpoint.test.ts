import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { podUid } from '../../pods/index.ts';
import { decodeCheckpoint, encodeCheckpoint } from './checkpoint.ts';
import { ContainerAllocateResponse } from './gen/device-plugin.ts';

/** A checkpoint written by the Go kubelet's own code. */
const written = [
  `{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3467439661}`,
  `{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"example.com/a":["two","one"],"z.com/b":[]}},"Checksum":2800227346}`,
  String.raw`{"Data":{"PodDeviceEntries":[{"PodUID":"pod-1","ContainerName":"main","ResourceName":"example.com/gadget","DeviceIDs":{"-1":["c"],"0":["a"],"1":["a","b"],"10":["d"]},"AllocResp":"Cg4KB0dBREdFVFMSA2EsYhIKCgIvYxICL2gYARoVCgYvZGV2L2MSBi9kZXYvaBoDbXJ3IgYKAWsSAXYqCwoJdi5jb20vYz1k"},{"PodUID":"pod-2","ContainerName":"other","ResourceName":"example.com/\u003c\u0026\u003e","DeviceIDs":{"-1":["ü"]},"AllocResp":""}],"RegisteredDevices":{"example.com/gadget":["a","b","c","d"]}},"Checksum":2972599055}`,
];

describe('kubelet_internal_checkpoint', () => {
  it('kubelet_internal_checkpoint is read back as written', () => {
    const name = fc.string({ unit: 'grapheme', minLength: 1 });
    const allocation = fc.record(
      {
        uid: name.map(podUid),
        container: name,
        resource: name,
        devices: fc
          .dictionary(fc.integer({ min: -1, max: 7 }).map(String), fc.array(name), { noNullPrototype: true })
          .map((nodes) => new Map(Object.entries(nodes).map(([node, ids]) => [Number(node), ids]))),
        response: fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      },
      { noNullPrototype: true },
    );
    const registered = fc
      .dictionary(name, fc.array(name), { noNullPrototype: true })
      .map((resources) => new Map(Object.entries(resources)));
    fc.assert(
      fc.property(fc.array(allocation), registered, (allocations, resources) => {
        const record = { allocations, registered: resources };
        assert.deepEqual(decodeCheckpoint(encodeCheckpoint(record)), record);
      }),
    );
  });

  it('kubelet_internal_checkpoint is compatible with the Go kubelet in both directions', () => {
    for (const text of written)
      assert.deepEqual(JSON.parse(encodeCheckpoint(decodeCheckpoint(text))), JSON.parse(text));
    const { allocations, registered } = decodeCheckpoint(written[2] ?? '');
    assert.deepEqual(registered, new Map([['example.com/gadget', ['a', 'b', 'c', 'd']]]));
    assert.deepEqual(
      allocations.map(({ devices }) => [...devices]),
      [
        [
          [0, ['a']],
          [1, ['a', 'b']],
          [10, ['d']],
          [-1, ['c']],
        ],
        [[-1, ['ü']]],
      ],
    );
    assert.deepEqual(ContainerAllocateResponse.decode(allocations[0]?.response ?? Buffer.alloc(0)), {
      envs: { GADGETS: 'a,b' },
      mounts: [{ containerPath: '/c', hostPath: '/h', readOnly: true }],
      devices: [{ containerPath: '/dev/c', hostPath: '/dev/h', permissions: 'mrw' }],
      annotations: { k: 'v' },
      cdiDevices: [{ name: 'v.com/c=d' }],
    });
  });

  it('kubelet_internal_checkpoint is rejected when it is damaged', () => {
    const text = encodeCheckpoint({ allocations: [], registered: new Map([['a/b', ['one', 'two']]]) });
    for (const broken of [text.replace('two', 'too'), text.slice(1), '', '[]', 'null', '{"Data":{}}'])
      assert.throws(() => decodeCheckpoint(broken), { code: 'DEVICE_CHECKPOINT' }, broken);
  });
});
