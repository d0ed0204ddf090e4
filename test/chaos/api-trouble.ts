import { after, before, describe, it } from 'node:test';
import { type ApiRound, type ApiRoundsPlan, apiRounds } from './api-rounds.ts';
import type { FaultyCluster } from './faulty-cluster.ts';

/** The environment in which the fault rounds run. */
export interface TroubledPlace {
  /** A name for the test, for example `a real cluster`. */
  readonly name: string;
  readonly skip: string | false;
  open(tell: (text: string) => void): Promise<FaultyCluster>;
}

const reported: Readonly<Record<ApiRound, string>> = {
  outage:
    'goes on without it, restarts and probes containers, and afterwards tells all and does what was asked',
  flaps: 'holds no more than before when it has gone and come back again and again',
  slowness: 'starts pods as fast as ever when it is slow, and stays Ready',
  silence: 'finds a way when nothing comes from it and nobody says so',
  restarts: 'is restarted, and no pod is, and nothing is written of any',
};

/** Runs all fault rounds of an API server, sequentially. */
export function apiTrouble(place: TroubledPlace, plan: ApiRoundsPlan): void {
  describe(`a node whose API server fails, on ${place.name}`, {
    skip: place.skip,
    timeout: 3_600_000,
  }, () => {
    let cluster: FaultyCluster | undefined;
    let end: 'in-order' | 'after-failure' = 'in-order';

    before(async (t) => {
      cluster = await place.open((text) => t.diagnostic(text));
    });

    after(async () => {
      await cluster?.close(end);
    });

    for (const [round, name] of Object.entries(reported) as [ApiRound, string][])
      it(name, async () => {
        // After a failed round, another round would fail because of its leftovers.
        if (cluster === undefined || end === 'after-failure') throw new Error('An earlier round has failed');
        end = 'after-failure';
        await apiRounds[round](cluster, plan);
        end = 'in-order';
      });
  });
}
