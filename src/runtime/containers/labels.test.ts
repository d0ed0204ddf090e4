import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anInstance, anObservedPod } from '../../../test/fakes/observed.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container } from '../../kinds/index.ts';
import {
  containerAnnotations,
  containerLabels,
  readContainerAnnotations,
  readOwner,
  restoreContainer,
  restorePod,
  sandboxLabels,
} from './labels.ts';

const main: Container = {
  name: 'test_container',
  image: 'foo/image:v1',
  terminationMessagePath: '/dev/termination-log',
  terminationMessagePolicy: 'File',
  ports: [{ name: 'http', containerPort: 80, protocol: 'TCP' }],
  lifecycle: { preStop: { exec: { command: ['sh', '-c', 'sleep 1'] } } },
};
const pod = aPod({
  metadata: { labels: { app: 'web', 'io.kubernetes.pod.uid': 'forged' }, deletionGracePeriodSeconds: 5 },
  spec: { containers: [main], terminationGracePeriodSeconds: 30 },
});

test("a sandbox has the labels of its pod, overridden by the kubelet's labels", () => {
  assert.deepEqual(sandboxLabels(pod), {
    app: 'web',
    'io.kubernetes.pod.name': 'web',
    'io.kubernetes.pod.namespace': 'default',
    'io.kubernetes.pod.uid': 'uid-1',
  });
});

test("a container has only the kubelet's labels, from which its pod and its name can be read", () => {
  const labels = containerLabels(pod, main);
  assert.deepEqual(Object.keys(labels).sort(), [
    'io.kubernetes.container.name',
    'io.kubernetes.pod.name',
    'io.kubernetes.pod.namespace',
    'io.kubernetes.pod.uid',
  ]);
  assert.deepEqual(readOwner(labels), {
    podName: 'web',
    namespace: 'default',
    uid: 'uid-1',
    containerName: 'test_container',
  });
  assert.equal(readOwner({ app: 'web' }), undefined);
});

test('annotations store what is needed to stop the container, and override annotations of devices', () => {
  const annotations = containerAnnotations(pod, main, 2, {
    'io.kubernetes.container.hash': 'forged',
    'device.example/slot': '7',
  });
  assert.deepEqual(annotations, {
    'device.example/slot': '7',
    'io.kubernetes.container.hash': '8e45cbd0',
    'io.kubernetes.container.restartCount': '2',
    'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
    'io.kubernetes.container.terminationMessagePolicy': 'File',
    'io.kubernetes.container.preStopHandler': '{"exec":{"command":["sh","-c","sleep 1"]}}',
    'io.kubernetes.container.ports': '[{"name":"http","containerPort":80,"protocol":"TCP"}]',
    'io.kubernetes.pod.deletionGracePeriod': '5',
    'io.kubernetes.pod.terminationGracePeriod': '30',
  });
});

test('container annotations omit fields that the pod lacks', () => {
  const annotations = containerAnnotations(aPod(), { name: 'a' }, 0);
  assert.deepEqual(Object.keys(annotations).sort(), [
    'io.kubernetes.container.hash',
    'io.kubernetes.container.restartCount',
    'io.kubernetes.container.terminationMessagePath',
    'io.kubernetes.container.terminationMessagePolicy',
  ]);
});

test('container annotations are read back with the values that were written', () => {
  assert.deepEqual(readContainerAnnotations(containerAnnotations(pod, main, 2)), {
    hash: '8e45cbd0',
    restartCount: 2,
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    preStop: main.lifecycle?.preStop,
    ports: main.ports,
    deletionGraceSeconds: 5,
    terminationGraceSeconds: 30,
  });
});

test('reading any container annotations never throws', () => {
  const name = fc
    .constantFrom('hash', 'restartCount', 'preStopHandler', 'ports')
    .map((n) => `io.kubernetes.container.${n}`);
  fc.assert(
    fc.property(fc.dictionary(name, fc.oneof(fc.string(), fc.json())), (annotations) => {
      const read = readContainerAnnotations(annotations);
      assert.ok(Number.isSafeInteger(read.restartCount));
      assert.ok(Array.isArray(read.ports));
    }),
  );
});

test("restores a pod without a spec from its containers' annotations", () => {
  const annotations = containerAnnotations(pod, main, 2);
  const observed = anObservedPod({ containers: [anInstance(main, { annotations }), anInstance(main)] });
  const restored = restorePod(observed);
  assert.equal(restored.metadata.name, 'web');
  assert.equal(restored.metadata.deletionGracePeriodSeconds, 5);
  assert.equal(restored.spec.terminationGracePeriodSeconds, 30);
  assert.equal(restored.spec.containers.length, 1);
  assert.deepEqual(restored.spec.containers[0], restoreContainer(anInstance(main, { annotations })));
  assert.deepEqual(restored.spec.containers[0]?.lifecycle, main.lifecycle);
});
