import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { anInstance, anObservedPod, aSandbox } from '../../test/fakes/observed.ts';
import type { PodSpec } from '../kinds/index.ts';
import { allContainersRun } from './observed.ts';

const [app, debug] = [
  { name: 'app', image: 'busybox' },
  { name: 'debug', image: 'busybox' },
];
const spec: PodSpec = { containers: [app] };

describe('whether all containers of a pod run', () => {
  it('returns true while the sandbox is ready and all containers of the pod run', () => {
    assert.equal(allContainersRun({ spec }, anObservedPod({ containers: [anInstance(app)] })), true);
    assert.equal(allContainersRun({ spec }, anObservedPod()), false);
    const exited = anInstance(app, { state: 'exited' });
    assert.equal(allContainersRun({ spec }, anObservedPod({ containers: [exited] })), false);
    const sandboxes = [aSandbox({ state: 'not-ready' })];
    assert.equal(
      allContainersRun({ spec }, anObservedPod({ sandboxes, containers: [anInstance(app)] })),
      false,
    );
  });

  it('returns false before an ephemeral container has started, and true after it has exited', () => {
    const debugged = { spec: { ...spec, ephemeralContainers: [debug] } };
    assert.equal(allContainersRun(debugged, anObservedPod({ containers: [anInstance(app)] })), false);
    const ended = anInstance(debug, { state: 'exited' });
    assert.equal(allContainersRun(debugged, anObservedPod({ containers: [anInstance(app), ended] })), true);
  });
});
