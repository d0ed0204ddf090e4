import type { Clock } from '../../lib/index.ts';
import { DbusConnection } from '../../protocols/dbus/index.ts';
import type { SliceManager } from '../cgroups/cgroup-manager.ts';
import { isJobRemoved, SystemdSlices } from './systemd-slices.ts';

/**
 * Creates the slice manager. At its first use it connects to systemd through the socket of the
 * message bus.
 */
export function systemdSlices({
  clock,
  busPath,
}: {
  readonly clock: Clock;
  readonly busPath: string;
}): SliceManager {
  const uid = process.getuid?.() ?? 0;
  return new SystemdSlices({
    clock,
    openBus: (signal) =>
      DbusConnection.open({ path: busPath, clock, uid, acceptsSignal: isJobRemoved }, signal),
  });
}
