import { anInstance } from '../../../test/fakes/observed.ts';
import { a, b, check, exited, says } from '../../../test/fakes/plans.ts';

check('regular containers', [
  { what: 'those that run stay', seen: { containers: [anInstance(a), anInstance(b)] }, expected: {} },
  { what: 'one that is missing starts', seen: { containers: [anInstance(a)] }, expected: { start: [1] } },
  {
    what: 'the newest instance is the one that counts',
    seen: { containers: [anInstance(a), anInstance(b), exited(a, 1), exited(b, 1)] },
    expected: {},
  },
  {
    what: 'one that failed starts again under OnFailure, one that succeeded does not',
    spec: { restartPolicy: 'OnFailure' },
    seen: { containers: [exited(a, 1), exited(b)] },
    expected: { start: [0] },
  },
  {
    what: 'the pod ends when nothing is left to do',
    spec: { restartPolicy: 'Never' },
    seen: { containers: [exited(a, 1), exited(b)] },
    expected: { killPod: true },
  },
  {
    what: 'one of two that ended does not end the pod',
    spec: { restartPolicy: 'Never' },
    seen: { containers: [exited(a, 1), anInstance(b)] },
    expected: {},
  },
  {
    what: 'a new image restarts it under every policy',
    spec: { containers: [{ ...a, image: 'x:2' }], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a)] },
    expected: { start: [0], kill: ['Container a definition changed, will be restarted'] },
  },
  {
    what: 'a missing hash counts as changed',
    spec: { containers: [a] },
    seen: { containers: [anInstance(a, { hash: '' })] },
    expected: { start: [0], kill: ['Container a definition changed, will be restarted'] },
  },
  {
    what: 'a failed liveness probe restarts it',
    spec: { containers: [a] },
    seen: { containers: [anInstance(a)] },
    context: { liveness: says('failure') },
    expected: { start: [0], kill: ['Container a failed liveness probe, will be restarted'] },
  },
  {
    what: 'a failed liveness probe ends it under Never, and with it the pod',
    spec: { containers: [a], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a)] },
    context: { liveness: says('failure') },
    expected: { killPod: true, kill: ['Container a failed liveness probe'] },
  },
  {
    what: 'a failed startup probe restarts it by the policy of the container',
    spec: { containers: [{ ...a, restartPolicy: 'OnFailure' }], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a)] },
    context: { startup: says('failure') },
    expected: { start: [0], kill: ['Container a failed startup probe, will be restarted'] },
  },
  {
    what: 'one that was lost from sight is stopped before it starts again',
    spec: { containers: [a] },
    seen: { containers: [anInstance(a, { state: 'unknown' })] },
    expected: { start: [0], kill: ['Container is in "unknown" state, try killing it before restart'] },
  },
  {
    what: 'one that was created but never started is started',
    spec: { containers: [a], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a, { state: 'created' })] },
    expected: { start: [0] },
  },
]);
