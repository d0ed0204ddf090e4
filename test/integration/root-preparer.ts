/**
 * Prepares a root directory as a starting kubelet does, or undoes the preparation, in the mount
 * namespace of this process; prints the resulting reports.
 */
import { prepareRoot, unshareRoot } from '../../src/cli/run/kubelet-directories.ts';
import { realClock } from '../../src/lib/index.ts';

const [, , what, rootDir = ''] = process.argv;
const { signal } = new AbortController();
if (what === 'share') console.log(JSON.stringify(await prepareRoot(rootDir, realClock(), signal)));
else await unshareRoot(rootDir, realClock(), signal);
