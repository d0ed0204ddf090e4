import { after, before, describe } from 'node:test';
import type { Backend } from './backend.ts';
import { containerContract } from './containers.contract.ts';
import { eventContract } from './events.contract.ts';
import { imageContract } from './images.contract.ts';
import { listingContract } from './listing.contract.ts';
import { logContract } from './logs.contract.ts';
import { nodeContract } from './node.contract.ts';
import { execContract, statsContract } from './processes.contract.ts';
import { restartContract } from './restart.contract.ts';
import { sandboxContract } from './sandboxes.contract.ts';

/**
 * Registers a part of the contract tests for one back end; `get` returns the back end once it is
 * open.
 */
export type Part = (get: () => Backend) => void;

const parts: Readonly<Record<string, Part>> = {
  node: nodeContract,
  sandboxes: sandboxContract,
  containers: containerContract,
  listing: listingContract,
  exec: execContract,
  logs: logContract,
  stats: statsContract,
  images: imageContract,
  events: eventContract,
  restart: restartContract,
};

/**
 * The properties of container runtimes on which kubeling relies. The same tests run with real
 * containerd and with the simulator, in process and over its socket, so that the simulator cannot
 * deviate from containerd.
 */
export function contractSuite(name: string, open: () => Promise<Backend>): void {
  describe(`the runtime contract on ${name}`, () => {
    let backend: Backend | undefined;
    before(async () => {
      backend = await open();
    });
    after(async () => {
      await backend?.[Symbol.asyncDispose]();
    });
    const get = () => {
      if (backend === undefined) throw new Error('The back end is not open');
      return backend;
    };
    for (const [part, register] of Object.entries(parts)) describe(part, () => register(get));
  });
}
