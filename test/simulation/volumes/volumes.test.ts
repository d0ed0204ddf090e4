import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from '../seeds.ts';
import { prepareSimulation } from '../simulate.ts';

const seeds = 25;
const repeatedSeeds = 3;
/**
 * A seed in which an ephemeral container was once started before the volume that only it uses was
 * mounted.
 */
const hardSeeds = [27];
const mounting = { cluster: 'joined', volumes: 'every-kind' } as const;

describe('the whole kubelet in simulation, with all volume types', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`a node with all volume types holds its invariants under ${seeds} seeds`, () =>
    playSeeds(seedsUpTo(seeds), mounting, lives));

  it('a node with all volume types holds its invariants under seeds that once violated one', () =>
    playSeeds(hardSeeds, mounting));

  it('the same seed replays the same history with all volume types', () =>
    playAgain(seedsUpTo(repeatedSeeds), mounting, lives));
});
