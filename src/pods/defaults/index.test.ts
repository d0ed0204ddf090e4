import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { PodSpec } from '../../kinds/index.ts';
import { pullPolicyOf } from '../index.ts';
import { withPodDefaults } from './index.ts';

const on = () => true;

function defaulted(spec: object): PodSpec {
  return withPodDefaults({ metadata: { name: 'a' }, spec: { containers: [], ...spec } }, on).spec;
}

test('sets the same defaults as the API server on a minimal pod', () => {
  assert.deepEqual(defaulted({ containers: [{ name: 'a', image: 'x' }], volumes: [{ name: 'v' }] }), {
    containers: [
      {
        name: 'a',
        image: 'x',
        imagePullPolicy: 'Always',
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ],
    volumes: [{ name: 'v', emptyDir: {} }],
    dnsPolicy: 'ClusterFirst',
    restartPolicy: 'Always',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    schedulerName: 'default-scheduler',
    enableServiceLinks: true,
  });
});

test('sets the pull policy Always for an image with the tag latest', () => {
  const digest = `sha256:${'0'.repeat(64)}`;
  const policies = {
    busybox: 'Always',
    'busybox:latest': 'Always',
    'busybox:1': 'IfNotPresent',
    'host:5000/busybox': 'Always',
    'host:5000/busybox:1': 'IfNotPresent',
    [`busybox@${digest}`]: 'IfNotPresent',
    [`busybox:1@${digest}`]: 'IfNotPresent',
    [`busybox:latest@${digest}`]: 'Always',
    '': 'IfNotPresent',
    'No Name': 'IfNotPresent',
  };
  for (const [image, policy] of Object.entries(policies))
    assert.equal(pullPolicyOf(undefined, image), policy, image);
});

test('sets the defaults of probes and hooks', () => {
  const [container] = defaulted({
    containers: [
      {
        name: 'a',
        livenessProbe: { httpGet: { port: 80 } },
        readinessProbe: { periodSeconds: 3, successThreshold: 2, tcpSocket: { port: 1 } },
        lifecycle: { preStop: { httpGet: { port: 'x', path: '/bye' } } },
      },
    ],
  }).containers;
  assert.deepEqual(container?.livenessProbe, {
    httpGet: { port: 80, path: '/', scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
  assert.equal(container?.readinessProbe?.periodSeconds, 3);
  assert.equal(container?.readinessProbe?.successThreshold, 2);
  assert.deepEqual(container?.lifecycle?.preStop?.httpGet, { port: 'x', path: '/bye', scheme: 'HTTP' });
});

test('sets missing requests to the limits, and rounds up to thousandths', () => {
  const spec = defaulted({
    containers: [
      { name: 'a', resources: { limits: { cpu: '1500u', memory: '64Mi' }, requests: { memory: '1Mi' } } },
    ],
    initContainers: [{ name: 'i', resources: { limits: { cpu: '1' } } }],
  });
  assert.deepEqual(spec.containers[0]?.resources, {
    limits: { cpu: '2m', memory: '64Mi' },
    requests: { cpu: '2m', memory: '1Mi' },
  });
  assert.deepEqual(spec.initContainers?.[0]?.resources?.requests, { cpu: '1' });
});

test('sets the host ports of containers on the host network', () => {
  const ports = [{ containerPort: 80 }, { containerPort: 81, hostPort: 90, protocol: 'UDP' }];
  const alone = defaulted({ containers: [{ name: 'a', ports }] });
  assert.deepEqual(alone.containers[0]?.ports?.[0], { containerPort: 80, protocol: 'TCP' });
  const shared = defaulted({ hostNetwork: true, containers: [{ name: 'a', ports }] });
  assert.deepEqual(shared.containers[0]?.ports, [
    { containerPort: 80, hostPort: 80, protocol: 'TCP' },
    { containerPort: 81, hostPort: 90, protocol: 'UDP' },
  ]);
});

test('sets the defaults of volumes', () => {
  const { volumes } = defaulted({
    volumes: [
      { name: 'h', hostPath: { path: '/x' } },
      { name: 's', secret: { secretName: 's' } },
      { name: 'c', configMap: { name: 'c', defaultMode: 0o400 } },
      { name: 'd', downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'metadata.name' } }] } },
      { name: 'p', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } },
      { name: 'i', image: { reference: 'x:1' } },
    ],
  });
  assert.deepEqual(volumes, [
    { name: 'h', hostPath: { path: '/x', type: '' } },
    { name: 's', secret: { secretName: 's', defaultMode: 0o644 } },
    { name: 'c', configMap: { name: 'c', defaultMode: 0o400 } },
    {
      name: 'd',
      downwardAPI: {
        items: [{ path: 'p', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }],
        defaultMode: 0o644,
      },
    },
    {
      name: 'p',
      projected: {
        sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 3600 } }],
        defaultMode: 0o644,
      },
    },
    { name: 'i', image: { reference: 'x:1', pullPolicy: 'IfNotPresent' } },
  ]);
});

test('sets pod-level requests from the containers when pod-level limits are set', () => {
  const spec = defaulted({
    resources: { limits: { cpu: '4', memory: '1Gi' } },
    containers: [
      { name: 'a', resources: { requests: { cpu: '500m' } } },
      { name: 'b', resources: { limits: { cpu: '1', 'hugepages-2Mi': '4Mi' } } },
    ],
    initContainers: [
      { name: 'side', restartPolicy: 'Always', resources: { requests: { cpu: '250m' } } },
      { name: 'once', resources: { requests: { cpu: '3' } } },
    ],
  });
  assert.deepEqual(spec.resources, {
    limits: { cpu: '4', memory: '1Gi', 'hugepages-2Mi': '4Mi' },
    requests: { cpu: '3250m', memory: '1Gi', 'hugepages-2Mi': '4Mi' },
  });
  const off = withPodDefaults({ spec: { containers: [], resources: { limits: { cpu: '1' } } } }, () => false);
  assert.deepEqual(off.spec.resources, { limits: { cpu: '1' } });
});

test('sets serviceAccount and serviceAccountName to the same name', () => {
  const spec = defaulted({ serviceAccount: 'x' });
  assert.deepEqual([spec.serviceAccountName, spec.serviceAccount], ['x', 'x']);
});

test('keeps fields that are set, and is idempotent', () => {
  const text = fc.option(fc.constantFrom('a', ''), { nil: undefined });
  const container = fc.record(
    {
      name: fc.string(),
      image: text,
      imagePullPolicy: text,
      resources: fc.constantFrom({}, { limits: { cpu: '1' } }, { requests: { cpu: '1', memory: '1Ki' } }),
      ports: fc.constantFrom([], [{ containerPort: 1 }]),
    },
    { requiredKeys: ['name'] },
  );
  const spec = fc.record(
    {
      containers: fc.array(container, { maxLength: 2 }),
      initContainers: fc.array(container, { maxLength: 2 }),
      hostNetwork: fc.boolean(),
      dnsPolicy: text,
      terminationGracePeriodSeconds: fc.constantFrom(0, 5),
      enableServiceLinks: fc.boolean(),
    },
    { requiredKeys: ['containers'] },
  );
  fc.assert(
    fc.property(spec, (given) => {
      const once = defaulted(given);
      assert.deepEqual(defaulted(once), once);
      if (given.enableServiceLinks !== undefined)
        assert.equal(once.enableServiceLinks, given.enableServiceLinks);
      if (given.terminationGracePeriodSeconds !== undefined)
        assert.equal(once.terminationGracePeriodSeconds, given.terminationGracePeriodSeconds);
    }),
  );
});
