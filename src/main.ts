/**
 * The composition root: the one place that touches the process. It owns the root AbortController and hands the
 * commands everything they use of the world.
 */
import { flushOutput, runCli, sealInheritedDescriptors, watchProcess } from './cli/index.ts';
import { realClock, systemRandom } from './lib/index.ts';

const root = new AbortController();
// Sockets are open from bind to chmod to all users whom the umask lets write, those of containerd and its shims too.
process.umask(process.umask() | 0o022);
sealInheritedDescriptors(process.argv);
watchProcess(process, root);

// A reader that went away (kubeling doctor | head) is no failure: what it no longer reads is dropped.
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
// A forgotten handle cannot hold us.
process.exit(code);
