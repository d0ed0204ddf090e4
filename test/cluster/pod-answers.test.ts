import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readRecording } from '../testdata/pods/recorded.ts';
import { ControlPlane } from './control-plane.ts';
import { PodAnswers } from './pod-answers.ts';
import { clusterAssets, noCluster } from './programs.ts';

/** What is recorded of a real API server is still what it says; after a change of it, record again. */
describe('a real API server answers to pods as it is recorded', { skip: noCluster() }, () => {
  let plane: ControlPlane;
  let responses: PodAnswers;
  before(async () => {
    plane = await ControlPlane.open(clusterAssets());
    responses = new PodAnswers(plane);
    await responses.setUp();
  });
  after(async () => plane[Symbol.asyncDispose]());

  for (const name of ['refused', 'accepted'] as const)
    it(`pods that are ${name}`, async () => {
      for (const one of readRecording(name))
        assert.deepEqual(await responses.toCreate(one), one.answer, one.what);
    });

  it('changes of pods', async () => {
    for (const one of readRecording('changes'))
      assert.deepEqual(await responses.toChange(one), one.answer, one.what);
  });
});
