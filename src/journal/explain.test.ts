import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { PodUid } from '../pods/index.ts';
import { explainPod } from './explain.ts';

describe('explainPod', () => {
  it('escapes control characters and line breaks in the message of a container', () => {
    const message = 'Readiness probe failed: \u001b[2J\u009b1m\u0007 ü\n     +0.000s  container a        ok';
    const at = new VirtualClock().now();
    const story = explainPod({
      uid: 'uid' as PodUid,
      fullName: 'web_default',
      dropped: 0,
      entries: [{ is: 'event', type: 'Warning', reason: 'Unhealthy', message, at, since: at, count: 1 }],
    });
    assert.equal(story.split('\n').length, 3);
    assert.match(
      story,
      /Unhealthy: Readiness probe failed: \\u001b\[2J\\u009b1m\\u0007 ü\\n {5}\+0\.000s {2}container a {8}ok\n$/,
    );
  });
});
