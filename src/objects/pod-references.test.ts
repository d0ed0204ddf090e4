import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { podUid } from '../pods/index.ts';
import { PodReferences } from './pod-references.ts';
import { secretNamesOf } from './references.ts';

function rig() {
  const told: string[] = [];
  const references = new PodReferences<never>(
    {
      add: ({ namespace, name }, pod) => told.push(`+${namespace}/${name} ${pod}`),
      remove: ({ namespace, name }, pod) => told.push(`-${namespace}/${name} ${pod}`),
      get: () => Promise.reject(new Error('not read here')),
    },
    secretNamesOf,
  );
  const pod = (uid: string, ...names: readonly string[]) =>
    aPod({ metadata: { uid: podUid(uid) }, spec: { imagePullSecrets: names.map((name) => ({ name })) } });
  return { told, references, pod };
}

test('reports only the difference to the previous registration', () => {
  const { told, references, pod } = rig();
  references.register(pod('u', 'a', 'b'));
  references.register(pod('u', 'a', 'b'));
  references.register(pod('u', 'b', 'c'));
  assert.deepEqual(told, ['+default/a u', '+default/b u', '+default/c u', '-default/a u']);
});

test('reports each pod separately, even for equal objects', () => {
  const { told, references, pod } = rig();
  references.register(pod('u', 'a'));
  references.register(pod('v', 'a'));
  references.unregister(podUid('u'));
  assert.deepEqual(told, ['+default/a u', '+default/a v', '-default/a u']);
});

test('unregisters a pod once, with its last references', () => {
  const { told, references, pod } = rig();
  references.register(pod('u', 'a'));
  references.register(pod('u', 'b'));
  told.length = 0;
  references.unregister(podUid('u'));
  references.unregister(podUid('u'));
  references.unregister(podUid('never'));
  assert.deepEqual(told, ['-default/b u']);
});
