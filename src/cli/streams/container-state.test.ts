import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { ContainerStatus } from '../../kinds/index.ts';
import { whyNotRunning } from './container-state.ts';

function why(status: Partial<ContainerStatus>): string | undefined {
  const whole = { name: 'main', image: '', imageID: '', ready: false, restartCount: 0, ...status };
  return whyNotRunning(aPod({ status: { containerStatuses: [whole] } }), 'main');
}

describe('why a container cannot be entered', () => {
  it('is nothing for one that runs', () => {
    assert.equal(why({ state: { running: {} } }), undefined);
  });

  it('is what it waits for, and how it ended before', () => {
    assert.equal(
      why({
        state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } },
        lastState: { terminated: { exitCode: 3, reason: 'Error' } },
      }),
      'the container main waits to be started: CrashLoopBackOff: back-off 10s; it last ended with exit code 3 (Error)',
    );
    assert.equal(why({}), 'the container main waits to be started');
  });

  it('is how it ended', () => {
    const state = { terminated: { exitCode: 0, reason: 'Completed' } };
    assert.equal(why({ state }), 'the container main has ended with exit code 0 (Completed)');
  });
});
