import type { Check } from '../check.ts';
import { capabilitiesCheck } from './capabilities.ts';
import { cgroups, systemd } from './cgroups.ts';
import { disk } from './disk.ts';
import {
  bridge,
  forwarding,
  inotify,
  kernel,
  kernelLog,
  overlay,
  seccomp,
  securityModules,
  swap,
  userNamespaces,
} from './kernel.ts';
import { cniConfiguration, cniPlugins, ipTool, packetFilter, portsCheck } from './network.ts';
import { architecture, clock, kubectl, machineId, mountTools, node, openFiles, root } from './program.ts';
import { runtimePrograms, runtimeSocket } from './runtime.ts';

/** All checks in the order of the report: process, kernel, runtime, network, others. */
export const allChecks: readonly Check[] = [
  node,
  architecture,
  root,
  capabilitiesCheck,
  kernel,
  cgroups,
  systemd,
  runtimeSocket,
  runtimePrograms,
  overlay,
  userNamespaces,
  seccomp,
  securityModules,
  cniPlugins,
  cniConfiguration,
  packetFilter,
  ipTool,
  bridge,
  forwarding,
  portsCheck,
  mountTools,
  disk,
  swap,
  openFiles,
  inotify,
  kernelLog,
  machineId,
  clock,
  kubectl,
];
