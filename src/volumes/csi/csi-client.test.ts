import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { MetricRegistry } from '../../lib/index.ts';
import { GrpcError } from '../../protocols/grpc/index.ts';
import { csiClient } from './csi-client.ts';
import { csiMetrics } from './csi-drivers.ts';

const { signal } = new AbortController();

function createHarness(nodeUnpublishVolume: () => Promise<object>) {
  const clock = new VirtualClock();
  const reported: string[] = [];
  const channel = { client: () => ({ nodeUnpublishVolume }) as never, close: () => {} };
  const client = csiClient(channel, clock, (...one) => void reported.push(one.join(' ')));
  return { clock, told: reported, client };
}

test('observes the result and the duration of each CSI call', async () => {
  const fine = createHarness(async () => ({}));
  await fine.client.unpublish('v', '/p', signal);
  assert.deepEqual(fine.told, ['/csi.v1.Node/NodeUnpublishVolume OK 0']);
  const refused = createHarness(async () => {
    throw new GrpcError('FAILED_PRECONDITION', 'no');
  });
  await assert.rejects(refused.client.unpublish('v', '/p', signal), {
    code: 'CSI_REFUSED',
    message: 'rpc error: code = FailedPrecondition desc = no',
  });
  assert.deepEqual(refused.told, ['/csi.v1.Node/NodeUnpublishVolume FailedPrecondition 0']);
});

test('aborts a CSI call after two minutes', async () => {
  const { client, clock, told } = createHarness(() => new Promise(() => {}));
  const response = assert.rejects(client.unpublish('v', '/p', signal), {
    code: 'CSI_UNCERTAIN',
    message: /^rpc error: code = DeadlineExceeded desc = .* NodeUnpublishVolume within 120000 ms$/,
  });
  await clock.advance(119_999);
  assert.deepEqual(told, []);
  await clock.advance(1);
  await response;
  assert.deepEqual(told, ['/csi.v1.Node/NodeUnpublishVolume DeadlineExceeded 120000']);
});

test('counts CSI calls with the metric names of the Go kubelet', async () => {
  const registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  const call = { method: '/csi.v1.Node/NodeGetInfo', code: 'OK', ms: 300 };
  const observe = csiMetrics(registry);
  observe('d.example', call);
  observe('d.example', { ...call, origin: 'in-tree' });
  const text = await registry.expose(signal);
  assert.match(
    text,
    /^csi_operations_seconds_bucket\{driver_name="d\.example",method_name="\/csi\.v1\.Node\/NodeGetInfo",grpc_status_code="OK",migrated="false",le="0\.5"\} 1$/m,
  );
  assert.match(text, /^csi_operations_seconds_count\{.*migrated="true"\} 1$/m);
});
