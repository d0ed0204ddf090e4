import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Starts a D-Bus daemon only for one test: Debian's dbus-daemon as a machine with systemd runs it.
 */
export async function openBus(directory: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = join(directory, 'bus');
  const config = join(directory, 'bus.conf');
  await writeFile(
    config,
    `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=${path}</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/><allow user="*"/></policy></busconfig>`,
  );
  const words = ['dbus-daemon', '--nofork', '--print-address', `--config-file=${config}`];
  const daemon = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...words], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(daemon.stdout, 'data');
  return {
    path,
    async [Symbol.asyncDispose]() {
      const ended = once(daemon, 'exit');
      daemon.kill('SIGKILL');
      await ended;
    },
  };
}

/** The reason why this machine cannot run a D-Bus daemon, or false when it can. */
export function busSkipReason(): string | false {
  try {
    for (const program of ['dbus-daemon', 'systemd-inhibit'])
      execFileSync('sh', ['-c', `command -v ${program}`]);
    return false;
  } catch {
    return 'needs dbus-daemon and systemd-inhibit, which the set-up installs on Debian only';
  }
}
