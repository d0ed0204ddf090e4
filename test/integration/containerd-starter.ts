import { openPrivateContainerd } from '../../src/containerd/index.ts';
import { containerdOptions, limit } from './containerd-fixture.ts';

/** A process that makes sure containerd runs, says what it found, and is gone: `node containerd-starter.ts DIR`. */
const containerd = await openPrivateContainerd(containerdOptions(String(process.argv[2])));
console.log(JSON.stringify(await containerd.ensureRunning(limit())));
