import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Container, Probe } from '../kinds/index.ts';
import { probeAction } from './probe-request.ts';

const container: Container = { name: 'main', image: 'x', ports: [{ name: 'web', containerPort: 8080 }] };

function actionOf(probe: Probe, podIp = '10.0.0.7') {
  return probeAction(probe, {
    container,
    podIp,
    expand: (command) => command.map((word) => word.toUpperCase()),
  });
}

it('sends a probe to the pod, or to the host of the probe', () => {
  assert.deepEqual(actionOf({ tcpSocket: { port: 'web' } }), { kind: 'tcp', host: '10.0.0.7', port: 8080 });
  assert.deepEqual(actionOf({ tcpSocket: { port: '81', host: 'db' } }, ''), {
    kind: 'tcp',
    host: 'db',
    port: 81,
  });
  assert.deepEqual(actionOf({ grpc: { port: 5_000, service: '' } }), {
    kind: 'grpc',
    host: '10.0.0.7',
    port: 5_000,
    service: '',
  });
});

it('sends the user agent of probes and accepts any content', () => {
  const httpHeaders = [{ name: 'host', value: 'example.org' }];
  assert.deepEqual(actionOf({ httpGet: { port: 'web', path: '/up?x=1', scheme: 'HTTPS', httpHeaders } }), {
    kind: 'http',
    request: {
      scheme: 'https',
      host: '10.0.0.7',
      port: 8080,
      target: '/up?x=1',
      headers: [
        ['host', 'example.org'],
        ['User-Agent', 'kube-probe/1.36'],
        ['Accept', '*/*'],
      ],
    },
  });
});

it('expands variables in probe commands', () => {
  assert.deepEqual(actionOf({ exec: { command: ['a', 'b'] } }), { kind: 'exec', command: ['A', 'B'] });
});

it('rejects a probe without an address or a handler', () => {
  for (const probe of [
    { tcpSocket: { port: 80 } },
    { httpGet: { port: 80 } },
    { grpc: { port: 1, service: '' } },
  ])
    assert.throws(() => actionOf(probe, ''), { code: 'PROBE_UNASKABLE' });
  assert.throws(() => actionOf({}), { code: 'PROBE_UNASKABLE' });
  assert.throws(() => actionOf({ tcpSocket: { port: 'api' } }), { code: 'ACTION_PORT' });
});
