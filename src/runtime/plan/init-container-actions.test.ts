import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anInstance, anObservedPod, aSandbox } from '../../../test/fakes/observed.ts';
import { a, b, check, exited, i1, i2, i3, notReady, s1, s2, says } from '../../../test/fakes/plans.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container } from '../../kinds/index.ts';
import type { ObservedContainer } from '../../pods/index.ts';
import { initializedSandbox } from './init-container-actions.ts';

check('regular init containers', [
  {
    what: 'the first starts in a new pod',
    spec: { initContainers: [i1, i2] },
    expected: { init: [0] },
  },
  {
    what: 'nothing else starts while one runs',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [anInstance(i1)] },
    expected: {},
  },
  {
    what: 'the next one starts after a success',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [exited(i1)] },
    expected: { init: [1] },
  },
  {
    what: 'the latest success counts even without records of earlier ones',
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
    what: 'a failed one is restarted',
    spec: { initContainers: [i1, i2], restartPolicy: 'OnFailure' },
    seen: { containers: [exited(i1, 1)] },
    expected: { init: [0] },
  },
  {
    what: 'an OOMKilled one with exit code 0 counts as failed',
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
    what: 'a restart rule of the container overrides Never',
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
    what: 'a created one is started',
    spec: { initContainers: [i1, i2], restartPolicy: 'Never' },
    seen: { containers: [anInstance(i1, { state: 'created' })] },
    expected: { init: [0] },
  },
  {
    what: 'one in unknown state is killed and restarted',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [anInstance(i1, { state: 'unknown' })] },
    expected: { init: [0], kill: ['Init container is in "unknown" state, try killing it before restart'] },
  },
  {
    what: 'one in unknown state under Never ends the pod',
    spec: { initContainers: [i1, i2], restartPolicy: 'Never' },
    seen: { containers: [anInstance(i1, { state: 'unknown' })] },
    expected: { killPod: true },
  },
  {
    what: 'none is restarted while a regular container runs',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [anInstance(a)] },
    expected: { start: [1] },
  },
  {
    what: 'an earlier failure is ignored while a regular container runs',
    spec: { initContainers: [i1, i2], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a), anInstance(b), exited(i1, 1)] },
    expected: {},
  },
  {
    what: 'a changed image does not restart a finished one',
    spec: { initContainers: [{ ...i1, image: 'x:2' }] },
    seen: { containers: [anInstance(a), anInstance(b), exited(i1)] },
    expected: {},
  },
  {
    what: 'none runs again without records when a regular container exited in this sandbox',
    spec: { initContainers: [i1, i2] },
    seen: { containers: [exited(a, 1), exited(b, 1)] },
    expected: { start: [0, 1] },
  },
  {
    what: 'all run again when the regular containers belong to an earlier sandbox',
    spec: { initContainers: [i1, i2] },
    seen: {
      sandboxes: [aSandbox({ id: 'sandbox-1', attempt: 1 }), notReady],
      containers: [exited(a, 1), exited(b, 1)],
    },
    expected: { init: [0] },
  },
  {
    what: 'a recorded initialization of this sandbox counts without any containers',
    spec: { initContainers: [i1, i2] },
    context: { initializedSandboxId: 'sandbox-0' },
    expected: { start: [0, 1] },
  },
  {
    what: 'a recorded initialization of another sandbox is ignored',
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
    what: 'the last running one lets regular containers start',
    spec: { initContainers: [s1, s2] },
    seen: { containers: [anInstance(s2), anInstance(s1)] },
    expected: { start: [0, 1] },
  },
  {
    what: 'nothing else starts before the first result of its startup probe',
    spec: { initContainers: [probed(s1), i1] },
    seen: { containers: [anInstance(s1)] },
    expected: {},
  },
  {
    what: 'nothing else starts while its startup probe is unknown',
    spec: { initContainers: [probed(s1), i1] },
    seen: { containers: [anInstance(s1)] },
    context: { startup: says('unknown') },
    expected: {},
  },
  {
    what: 'the next starts when its startup probe succeeds',
    spec: { initContainers: [probed(s1), i1] },
    seen: { containers: [anInstance(s1)] },
    context: { startup: says('success') },
    expected: { init: [1] },
  },
  {
    what: 'a failed startup probe restarts it, even under Never',
    spec: { initContainers: [probed(s1), i1], restartPolicy: 'Never' },
    seen: { containers: [anInstance(s1)] },
    context: { startup: says('failure') },
    expected: { init: [0], kill: ['Init container s1 failed startup probe'] },
  },
  {
    what: 'a failed liveness probe restarts it without blocking others',
    spec: { initContainers: [probed(s1), i1] },
    seen: { containers: [anInstance(s1)] },
    context: { startup: says('success'), liveness: says('failure') },
    expected: { init: [0, 1], kill: ['Init container s1 failed liveness probe'] },
  },
  {
    what: 'a changed image restarts it',
    spec: { initContainers: [{ ...s1, image: 'x:2' }] },
    seen: { containers: [anInstance(a), anInstance(b), anInstance(s1)] },
    expected: { init: [0], kill: ['Init container s1 definition changed'] },
  },
  {
    what: 'an exited one is restarted before the next init container',
    spec: { initContainers: [s1, i1] },
    seen: { containers: [exited(s1, 0)] },
    expected: { init: [0] },
  },
  {
    what: 'exited ones are restarted in order beside running regular containers',
    spec: { initContainers: [s1, s2], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a), anInstance(b), exited(s1, 1), exited(s2, 1)] },
    expected: { init: [0, 1] },
  },
  {
    what: 'one without a record is started again beside a running regular container',
    spec: { initContainers: [s1, i1] },
    seen: { containers: [anInstance(a), anInstance(b)] },
    expected: { init: [0] },
  },
  {
    what: 'one in unknown state is killed and restarted, even under Never',
    spec: { initContainers: [s1], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a), anInstance(b), anInstance(s1, { state: 'unknown' })] },
    expected: { init: [0], kill: ['Init container is in "unknown" state, try killing it before restart'] },
  },
  {
    what: 'a finished pod ends although its sidecar runs',
    spec: { initContainers: [s1], restartPolicy: 'Never' },
    seen: { containers: [exited(a), exited(b), anInstance(s1)] },
    expected: { killPod: true },
  },
  {
    what: 'a finished pod ends although its sidecar must be restarted',
    spec: { initContainers: [s1], restartPolicy: 'Never' },
    seen: { containers: [exited(a), exited(b), exited(s1, 1)] },
    expected: { killPod: true },
  },
  {
    what: 'regular containers that exited together with a sidecar wait for it',
    spec: { initContainers: [s1] },
    seen: { containers: [exited(a), exited(b), exited(s1, 1)] },
    expected: { init: [0] },
  },
]);

test('a sandbox counts as initialized when the last regular init container succeeded in it', () => {
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
  assert.equal(sandboxOf([s1], anInstance(s1)), undefined, 'restartable init containers');
  assert.equal(sandboxOf([]), undefined);
});
