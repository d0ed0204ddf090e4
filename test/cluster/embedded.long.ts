import { after, before, describe } from 'node:test';
import { SmallCluster } from './small-cluster.ts';
import { lostNode } from './suites/lost-node.ts';
import { embeddedApi } from './suites/place.ts';

describe('slow tests of the embedded API', { timeout: 900_000 }, () => {
  let shared: SmallCluster;

  before(async () => {
    shared = await SmallCluster.openEmbedded();
  });

  after(async () => {
    await shared?.[Symbol.asyncDispose]();
  });

  lostNode(embeddedApi(() => shared));
});
