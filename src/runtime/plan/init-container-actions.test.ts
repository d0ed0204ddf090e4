import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anInstance, anObservedPod, aSandbox } from '../../../test/fakes/observed.ts';
import { a, b, check, exited, i1, i2, i3, notReady, s1, s2, says } from '../../../test/fakes/plans.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container } from '../../kinds/index.ts';
import type { ObservedContainer } from '../../pods/index.ts';
import { initializedSandbox } from './init-container-actions.ts';

check('plain init containers', [
  {
    what: 'the first starts when none was seen',
    spec: { initContainers: [i1, i2] },
    expected: { init: [0] },
  },
  {
    what: 'nothing starts beside one that runs',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [anInstance(i1)] },
    expected: {},
  },
  {
    what: 'the next starts after a success',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [exited(i1)] },
    expected: { init: [1] },
  },
  {
    what: 'the latest success counts though records of earlier ones are gone',
    spec: { initContainers: [i1, i2, i3] },
    seen: { containers: [exited(i2)] },
    expected: { init: [2] },
  },
  {
    what: 'regular containers start after the last success',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [exited(i1), exited(i2)] },
    expected: { start: [0, 1] },
  },
  {
    what: 'a failed one is run again',
    spec: { initContainers: [i1, i2], restartPolicy: 'OnFailure' },
    seen: { containers: [exited(i1, 1)] },
    expected: { init: [0] },
  },
  {
    what: 'exit 0 of a container that ran out of memory is a failure',
    spec: { initContainers: [i1, i2], restartPolicy: 'Always' },
    seen: { containers: [exited(i1, 0, { reason: 'OOMKilled' })] },
    expected: { init: [0] },
  },
  {
    what: 'a failure under Never ends the pod',
    spec: { initContainers: [i1, i2], restartPolicy: 'Never' },
    seen: { containers: [exited(i1, 1)] },
    expected: { killPod: true },
  },
  {
    what: 'a rule of the container saves it from Never',
    spec: {
      initContainers: [
        {
          ...i1,
          restartPolicy: 'Never',
          restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
        },
      ],
      restartPolicy: 'Never',
    },
    seen: { containers: [exited(i1, 42)] },
    expected: { init: [0] },
  },
  {
    what: 'one that was created but never started is started',
    spec: { initContainers: [i1, i2], restartPolicy: 'Never' },
    seen: { containers: [anInstance(i1, { state: 'created' })] },
    expected: { init: [0] },
  },
  {
    what: 'one that was lost from sight is stopped and run again',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [anInstance(i1, { state: 'unknown' })] },
    expected: { init: [0], kill: ['Init container is in "unknown" state, try killing it before restart'] },
  },
  {
    what: 'one that was lost from sight under Never ends the pod',
    spec: { initContainers: [i1, i2], restartPolicy: 'Never' },
    seen: { containers: [anInstance(i1, { state: 'unknown' })] },
    expected: { killPod: true },
  },
  {
    what: 'they are not run again while a regular container runs, whatever is left of them',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [anInstance(a)] },
    expected: { start: [1] },
  },
  {
    what: 'a failure that is over does not matter while a regular container runs',
    spec: { initContainers: [i1, i2], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a), anInstance(b), exited(i1, 1)] },
    expected: {},
  },
  {
    what: 'a new image does not run one again',
    spec: { initContainers: [{ ...i1, image: 'x:2' }] },
    seen: { containers: [anInstance(a), anInstance(b), exited(i1)] },
    expected: {},
  },
  {
    what: 'they are not run again when their records are gone and a regular container ended in this sandbox',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [exited(a, 1), exited(b, 1)] },
    expected: { start: [0, 1] },
  },
  {
    what: 'they are run again when the regular containers are of an earlier sandbox',
    spec: { initContainers: [i1, i2] },
    seen: {
      sandboxes: [aSandbox({ id: 'sandbox-1', attempt: 1 }), notReady],
      containers: [exited(a, 1), exited(b, 1)],
    },
    expected: { init: [0] },
  },
  {
    what: 'a record that they are done goes before the lack of all traces',
    spec: { initContainers: [i1, i2] },
    context: { initializedSandboxId: 'sandbox-0' },
    expected: { start: [0, 1] },
  },
  {
    what: 'a record about another sandbox counts for nothing',
    spec: { initContainers: [i1, i2] },
    context: { initializedSandboxId: 'sandbox-9' },
    expected: { init: [0] },
  },
]);

const probed = (container: Container): Container => ({ ...container, startupProbe: {}, livenessProbe: {} });

check('sidecars', [
  {
    what: 'a running one lets the next start',
    spec: { initContainers: [s1, i1] },
    seen: { containers: [anInstance(s1)] },
    expected: { init: [1] },
  },
  {
    what: 'the last one running lets regular containers start',
    spec: { initContainers: [s1, s2] },
    seen: { containers: [anInstance(s2), anInstance(s1)] },
    expected: { start: [0, 1] },
  },
  {
    what: 'nothing follows before its startup probe has answered',
    spec: { initContainers: [probed(s1), i1] },
    seen: { containers: [anInstance(s1)] },
    expected: {},
  },
  {
    what: 'nothing follows while its startup probe is undecided',
    spec: { initContainers: [probed(s1), i1] },
    seen: { containers: [anInstance(s1)] },
    context: { startup: says('unknown') },
    expected: {},
  },
  {
    what: 'the next follows when its startup probe succeeds',
    spec: { initContainers: [probed(s1), i1] },
    seen: { containers: [anInstance(s1)] },
    context: { startup: says('success') },
    expected: { init: [1] },
  },
  {
    what: 'a failed startup probe restarts it, under Never too',
    spec: { initContainers: [probed(s1), i1], restartPolicy: 'Never' },
    seen: { containers: [anInstance(s1)] },
    context: { startup: says('failure') },
    expected: { init: [0], kill: ['Init container s1 failed startup probe'] },
  },
  {
    what: 'a failed liveness probe restarts it and holds nothing up',
    spec: { initContainers: [probed(s1), i1] },
    seen: { containers: [anInstance(s1)] },
    context: { startup: says('success'), liveness: says('failure') },
    expected: { init: [0, 1], kill: ['Init container s1 failed liveness probe'] },
  },
  {
    what: 'a new image restarts it',
    spec: { initContainers: [{ ...s1, image: 'x:2' }] },
    seen: { containers: [anInstance(a), anInstance(b), anInstance(s1)] },
    expected: { init: [0], kill: ['Init container s1 definition changed'] },
  },
  {
    what: 'one that ended is started again and its successor waits',
    spec: { initContainers: [s1, i1] },
    seen: { containers: [exited(s1, 0)] },
    expected: { init: [0] },
  },
  {
    what: 'those that ended are started in order beside running regular containers',
    spec: { initContainers: [s1, s2], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a), anInstance(b), exited(s1, 1), exited(s2, 1)] },
    expected: { init: [0, 1] },
  },
  {
    what: 'one whose record is gone is started again beside a running regular container',
    spec: { initContainers: [s1, i1] },
    seen: { containers: [anInstance(a), anInstance(b)] },
    expected: { init: [0] },
  },
  {
    what: 'one that was lost from sight is stopped and started, under Never too',
    spec: { initContainers: [s1], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a), anInstance(b), anInstance(s1, { state: 'unknown' })] },
    expected: { init: [0], kill: ['Init container is in "unknown" state, try killing it before restart'] },
  },
  {
    what: 'a finished pod ends though its sidecar runs',
    spec: { initContainers: [s1], restartPolicy: 'Never' },
    seen: { containers: [exited(a), exited(b), anInstance(s1)] },
    expected: { killPod: true },
  },
  {
    what: 'a finished pod ends though its sidecar has to come back',
    spec: { initContainers: [s1], restartPolicy: 'Never' },
    seen: { containers: [exited(a), exited(b), exited(s1, 1)] },
    expected: { killPod: true },
  },
  {
    what: 'regular containers that ended with their sidecar wait for it',
    spec: { initContainers: [s1] },
    seen: { containers: [exited(a), exited(b), exited(s1, 1)] },
    expected: { init: [0] },
  },
]);

test('a sandbox counts as initialized once the last plain init container has succeeded in it', () => {
  const silent = { liveness: () => undefined, startup: () => undefined };
  const sandboxOf = (initContainers: readonly Container[], ...containers: readonly ObservedContainer[]) =>
    initializedSandbox(
      aPod({ spec: { initContainers } }),
      anObservedPod({ sandboxes: [aSandbox()], containers }),
      silent,
    );
  const { id } = aSandbox();
  assert.equal(sandboxOf([i1, i2], exited(i2)), id);
  assert.equal(sandboxOf([i1, i2], exited(i1)), undefined);
  assert.equal(sandboxOf([i1, i2], exited(i2, 1)), undefined);
  assert.equal(sandboxOf([i1, i2], exited(i2, 0, { sandboxId: 'earlier' })), undefined);
  assert.equal(sandboxOf([s1], anInstance(s1)), undefined, 'sidecars come back by themselves');
  assert.equal(sandboxOf([]), undefined);
});
