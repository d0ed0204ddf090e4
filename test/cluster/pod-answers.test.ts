import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readRecording } from '../testdata/pods/recorded.ts';
import { ControlPlane } from './control-plane.ts';
import { PodAnswers } from './pod-answers.ts';
import { clusterAssets, noCluster } from './programs.ts';

/**
 * The recorded responses of a real API server must still be current; after a change, record them
 * again.
 */
describe('a real API server responds to requests for pods as recorded', { skip: noCluster() }, () => {
  let plane: ControlPlane;
  let responses: PodAnswers;
  before(async () => {
    plane = await ControlPlane.open(clusterAssets());
    responses = new PodAnswers(plane);
    await responses.setUp();
  });
  after(async () => plane[Symbol.asyncDispose]());

  for (const name of ['refused', 'accepted'] as const)
    it(`creation of pods that are ${name}`, async () => {
      for (const one of readRecording(name))
        assert.deepEqual(await responses.toCreate(one), one.answer, one.what);
    });

  it('the embedded API answers updates and patches of pods like the recorded API server', async () => {
    for (const one of readRecording('changes'))
      assert.deepEqual(await responses.toChange(one), one.answer, one.what);
  });
});
