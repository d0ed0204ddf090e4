import { anInstance } from '../../../test/fakes/observed.ts';
import { a, b, check, exited, says } from '../../../test/fakes/plans.ts';

check('regular containers', [
  { what: 'running containers are kept', seen: { containers: [anInstance(a), anInstance(b)] }, expected: {} },
  { what: 'a missing container is started', seen: { containers: [anInstance(a)] }, expected: { start: [1] } },
  {
    what: 'the newest instance counts',
    seen: { containers: [anInstance(a), anInstance(b), exited(a, 1), exited(b, 1)] },
    expected: {},
  },
  {
    what: 'a failed one is restarted under OnFailure, a succeeded one is not',
    spec: { restartPolicy: 'OnFailure' },
    seen: { containers: [exited(a, 1), exited(b)] },
    expected: { start: [0] },
  },
  {
    what: 'the pod ends when no container runs or starts',
    spec: { restartPolicy: 'Never' },
    seen: { containers: [exited(a, 1), exited(b)] },
    expected: { killPod: true },
  },
  {
    what: 'one exited container of two does not end the pod',
    spec: { restartPolicy: 'Never' },
    seen: { containers: [exited(a, 1), anInstance(b)] },
    expected: {},
  },
  {
    what: 'a changed image restarts it under every policy',
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
    what: 'a failed liveness probe under Never stops it and ends the pod',
    spec: { containers: [a], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a)] },
    context: { liveness: says('failure') },
    expected: { killPod: true, kill: ['Container a failed liveness probe'] },
  },
  {
    what: "a failed startup probe restarts it by the container's policy",
    spec: { containers: [{ ...a, restartPolicy: 'OnFailure' }], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a)] },
    context: { startup: says('failure') },
    expected: { start: [0], kill: ['Container a failed startup probe, will be restarted'] },
  },
  {
    what: 'one in unknown state is killed before its restart',
    spec: { containers: [a] },
    seen: { containers: [anInstance(a, { state: 'unknown' })] },
    expected: { start: [0], kill: ['Container is in "unknown" state, try killing it before restart'] },
  },
  {
    what: 'a created one is started',
    spec: { containers: [a], restartPolicy: 'Never' },
    seen: { containers: [anInstance(a, { state: 'created' })] },
    expected: { start: [0] },
  },
]);
