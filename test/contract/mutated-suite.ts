/**
 * Runs the contract suite on a simulator that violates one rule. usage: mutated-suite.ts MUTATION
 */
import { type SimulatorMutation, simulatorMutations } from '../simulator/index.ts';
import { inProcessBackend } from './simulator-backend.ts';
import { contractSuite } from './suite.ts';

const mutation = simulatorMutations.find((name): name is SimulatorMutation => name === process.argv[2]);
if (mutation === undefined) throw new Error(`Unknown mutation: ${process.argv[2]}`);
for (const flavour of ['containerd-1.6', 'containerd-2'] as const) {
  contractSuite(`${flavour} with ${mutation}`, () => inProcessBackend({ flavour, mutation }));
}
