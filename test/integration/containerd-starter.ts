import { openPrivateContainerd } from '../../src/containerd/index.ts';
import { containerdOptions, limit } from './containerd-fixture.ts';

/**
 * Ensures that containerd runs, prints the result as JSON and exits: `node containerd-starter.ts
 * DIR`.
 */
const containerd = await openPrivateContainerd(containerdOptions(String(process.argv[2])));
console.log(JSON.stringify(await containerd.ensureRunning(limit())));
