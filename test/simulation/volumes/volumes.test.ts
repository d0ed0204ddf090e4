import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from '../seeds.ts';
import { prepareSimulation } from '../simulate.ts';

const seeds = 25;
const repeatedSeeds = 3;
/**
 * In one seed an ephemeral container was started before the volume that only it uses was mounted.
 */
const hardSeeds = [27];
const mounting = { cluster: 'joined', volumes: 'every-kind' } as const;

describe('the whole kubelet in simulation, with volumes of every kind', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`holds its invariants under ${seeds} seeds`, () => playSeeds(seedsUpTo(seeds), mounting, lives));

  it('holds its invariants under seeds that once violated one', () => playSeeds(hardSeeds, mounting));

  it('replays the same history under the same seed', () =>
    playAgain(seedsUpTo(repeatedSeeds), mounting, lives));
});
