import type { Container, FieldPath, VolumeDevice, VolumeMount, VolumeSource } from '../../kinds/index.ts';
import { descendingPath, pathWithoutBacksteps } from './names.ts';
import {
  checkChoice,
  checkPresent,
  checkText,
  named,
  notThere,
  type Report,
  refuse,
  type TextRule,
  wrong,
} from './report.ts';

/** The valid volumes of the pod, by name. */
export type KnownVolumes = ReadonlyMap<string, VolumeSource>;

export function checkMounts(
  report: Report,
  path: FieldPath,
  container: Container,
  volumes: KnownVolumes,
): void {
  const devices = container.volumeDevices ?? [];
  const deviceNames = new Set(devices.map(({ name }) => name));
  const devicePaths = new Set(devices.map(({ devicePath }) => devicePath));
  const paths = new Set<string>();
  container.volumeMounts?.forEach((mount, index) => {
    const at = path.index(index);
    checkPresent(report, at.child('name'), mount.name);
    if (!volumes.has(mount.name)) notThere(report, at.child('name'), mount.name);
    checkPresent(report, at.child('mountPath'), mount.mountPath);
    if (paths.has(mount.mountPath)) wrong(report, at.child('mountPath'), mount.mountPath, 'must be unique');
    paths.add(mount.mountPath);
    if (deviceNames.has(mount.name))
      wrong(report, at.child('name'), mount.name, 'must not already exist in volumeDevices');
    if (devicePaths.has(mount.mountPath))
      wrong(
        report,
        at.child('mountPath'),
        mount.mountPath,
        'must not already exist as a path in volumeDevices',
      );
    const kind = container.securityContext?.privileged === true ? 'privileged' : 'plain';
    checkMountOptions(report, at, path, mount, kind);
  });
}

function checkMountOptions(
  report: Report,
  path: FieldPath,
  list: FieldPath,
  mount: VolumeMount,
  container: 'privileged' | 'plain',
): void {
  const tell = (field: string) => named(report, list.child(field));
  checkText(tell('subPath'), path.child('subPath'), mount.subPath, descendingPath);
  if (mount.subPath && mount.subPathExpr)
    wrong(
      report,
      path.child('subPathExpr'),
      mount.subPathExpr,
      'subPathExpr and subPath are mutually exclusive',
    );
  checkText(tell('subPathExpr'), path.child('subPathExpr'), mount.subPathExpr, descendingPath);
  const propagation = path.child('mountPropagation');
  checkChoice(tell('mountPropagation'), propagation, mount.mountPropagation, {
    of: ['Bidirectional', 'HostToContainer', 'None'],
    absent: 'allowed',
  });
  if (mount.mountPropagation === 'Bidirectional' && container === 'plain')
    refuse(
      tell('mountPropagation'),
      propagation,
      'Bidirectional mount propagation is available only to privileged containers',
    );
  checkRecursiveReadOnly(tell('recursiveReadOnly'), path.child('recursiveReadOnly'), mount);
}

function checkRecursiveReadOnly(report: Report, path: FieldPath, mount: VolumeMount): void {
  const requested = mount.recursiveReadOnly;
  checkChoice(report, path, requested, { of: ['Disabled', 'Enabled', 'IfPossible'], absent: 'allowed' });
  if (requested !== 'IfPossible' && requested !== 'Enabled') return;
  if (mount.readOnly !== true) refuse(report, path, 'may only be specified when readOnly is true');
  if ((mount.mountPropagation ?? 'None') !== 'None')
    refuse(report, path, 'may only be specified when mountPropagation is None or not specified');
}

export function checkDevices(
  report: Report,
  path: FieldPath,
  container: Container,
  volumes: KnownVolumes,
): void {
  const mounts = container.volumeMounts ?? [];
  const mountNames = new Set(mounts.map(({ name }) => name));
  const mountPaths = new Set(mounts.map(({ mountPath }) => mountPath));
  const names = new Set<string>();
  const paths = new Set<string>();
  container.volumeDevices?.forEach((device, index) => {
    const at = path.index(index);
    checkDevice(report, at, device, volumes.get(device.name));
    if (names.has(device.name)) wrong(report, at.child('name'), device.name, 'must be unique');
    if (paths.has(device.devicePath))
      wrong(report, at.child('devicePath'), device.devicePath, 'must be unique');
    names.add(device.name);
    paths.add(device.devicePath);
    if (mountNames.has(device.name))
      wrong(report, at.child('name'), device.name, 'must not already exist in volumeMounts');
    if (mountPaths.has(device.devicePath))
      wrong(
        report,
        at.child('devicePath'),
        device.devicePath,
        'must not already exist as a path in volumeMounts',
      );
  });
}

const noBacksteps: TextRule = (text) =>
  pathWithoutBacksteps(text).length > 0 ? ["can not contain backsteps ('..')"] : [];

/** Only claims can be mounted as block devices. */
function checkDevice(
  report: Report,
  path: FieldPath,
  device: VolumeDevice,
  source: VolumeSource | undefined,
): void {
  checkPresent(report, path.child('name'), device.name);
  checkPresent(report, path.child('devicePath'), device.devicePath);
  checkText(report, path.child('devicePath'), device.devicePath, noBacksteps);
  if (source === undefined) {
    notThere(report, path.child('name'), device.name);
  } else if (!source.persistentVolumeClaim && !source.ephemeral)
    wrong(
      report,
      path.child('name'),
      device.name,
      'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
    );
}
