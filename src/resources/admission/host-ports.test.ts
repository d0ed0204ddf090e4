import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ContainerPort } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import { checkStreamUrl, hasHostPortConflict, nodePortRequested } from './host-ports.ts';

function podWith(ports: readonly ContainerPort[], spec: Partial<Pod['spec']> = {}): Pod {
  return {
    metadata: { name: 'p', namespace: 'default', uid: 'u' },
    spec: { containers: [{ name: 'main', ports }], ...spec },
  } as unknown as Pod;
}
const port = (hostPort: number, rest: Partial<ContainerPort> = {}): ContainerPort => ({
  containerPort: 80,
  hostPort,
  ...rest,
});

describe('host port conflicts', () => {
  it('two host ports conflict only for the same port and protocol on overlapping addresses', () => {
    const held = [podWith([port(80, { hostIP: '10.0.0.1' }), port(90), port(0)])];
    const cases: readonly (readonly [ContainerPort, boolean])[] = [
      [port(80), true],
      [port(80, { hostIP: '10.0.0.1' }), true],
      [port(80, { hostIP: '10.0.0.2' }), false],
      [port(80, { hostIP: '10.0.0.1', protocol: 'UDP' }), false],
      [port(90, { hostIP: '10.0.0.2' }), true],
      [port(81), false],
    ];
    for (const [requested, expected] of cases)
      assert.equal(hasHostPortConflict(podWith([requested]), held), expected, JSON.stringify(requested));
  });

  it('compares the host ports of many pods in linear time', () => {
    const many = (from: number) => podWith(Array.from({ length: 9_900 }, (_, at) => port(from + at)));
    const rest = [many(1), many(10_000), many(20_000)];
    const { user } = process.cpuUsage();
    for (let round = 0; round < 5; round++) assert.equal(hasHostPortConflict(many(30_000), rest), false);
    assert.ok(process.cpuUsage().user - user < 2_000_000);
  });

  it('finds a requested host port on which the node itself listens, except for pods with host network', () => {
    const node = new Set([10_250]);
    assert.equal(nodePortRequested(podWith([port(80), port(10_250, { hostIP: '127.0.0.1' })]), node), 10_250);
    assert.equal(nodePortRequested(podWith([port(10_250, { protocol: 'UDP' })]), node), undefined);
    assert.equal(nodePortRequested(podWith([port(10_250)], { hostNetwork: true }), node), undefined);
  });
});

describe('checkStreamUrl: rejects stream URLs of the runtime that conflict with host ports of pods', () => {
  const pods = { getPods: () => [podWith([port(42_443)])] };

  it('rejects a stream URL whose port is redirected to a pod by its host port', () => {
    assert.throws(() => checkStreamUrl('http://127.0.0.1:42443/exec/token', pods), {
      code: 'STREAM_REFUSED',
      message: /host port of pod default\/p/,
    });
  });

  it('returns the URL of a stream whose port no pod has as host port', () => {
    for (const url of ['http://127.0.0.1:42444/exec/token', 'not a url'])
      assert.equal(checkStreamUrl(url, pods), url);
  });
});
