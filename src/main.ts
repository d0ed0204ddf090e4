/**
 * The composition root, the only module that uses process-wide state. It owns the root
 * AbortController and passes all dependencies to the commands.
 */
import { flushOutput, runCli, sealInheritedDescriptors, watchProcess } from './cli/index.ts';
import { realClock, systemRandom } from './lib/index.ts';

const root = new AbortController();
// Removes the write permission of group and others: between bind and chmod a Unix socket is
// accessible to every user that the umask allows, and containerd and its shims inherit this umask
// for their sockets.
process.umask(process.umask() | 0o022);
sealInheritedDescriptors(process.argv);
watchProcess(process, root);

// A reader that closed the pipe (kubeling doctor | head) is no failure: the remaining output is
// dropped.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

const code = await runCli({
  argv: process.argv.slice(2),
  stdout: process.stdout,
  stderr: process.stderr,
  stdio: () => ({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }),
  env: process.env,
  clock: realClock(),
  random: systemRandom(),
  signal: root.signal,
  onHangup(listener) {
    process.on('SIGHUP', listener);
    return { [Symbol.dispose]: () => void process.off('SIGHUP', listener) };
  },
});
await flushOutput([process.stdout, process.stderr], root.signal);
// A handle that was not closed must not keep the process alive.
process.exit(code);
