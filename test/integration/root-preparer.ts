/**
 * Prepares a root directory as a kubelet does when it starts, or takes that away again, among the mounts this process is
 * started in; writes what is told of it.
 */
import { prepareRoot, unshareRoot } from '../../src/cli/run/kubelet-directories.ts';
import { realClock } from '../../src/lib/index.ts';

const [, , what, rootDir = ''] = process.argv;
const { signal } = new AbortController();
if (what === 'share') console.log(JSON.stringify(await prepareRoot(rootDir, realClock(), signal)));
else await unshareRoot(rootDir, realClock(), signal);
