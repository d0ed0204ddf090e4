/** Descriptions of nodes, services and the other kinds. */
export const otherDescriptions = `
ConfigMap: Settings that pods may read, as named entries.
 immutable: Whether the entries can never change again.
 data: The entries, as text.
 binaryData: Further entries, as bytes in base64.
Secret: Named entries that not everybody should read, such as passwords.
 immutable: Whether the entries can never change again.
 data: The entries, as bytes in base64.
 stringData: Entries as plain text, for writing: the server puts them into data.
 type: What the Secret is for; it decides which entries there must be.
Namespace: A place for objects, in which their names are their own.
 spec: The desired state of the namespace.
 status: The observed state.
NamespaceSpec: The desired state of a namespace.
 finalizers: Finalizers that must be removed before the namespace is deleted.
NamespaceStatus: The observed state of a namespace.
 phase: Active, or Terminating while its contents are deleted.
 conditions: The current conditions of the deletion.
NamespaceCondition: A condition of a namespace.
 type: The type of the condition.
 status: True, False or Unknown.
 lastTransitionTime: When the status last changed.
 reason: The reason in one machine-readable word.
 message: A human-readable explanation.
ServiceAccount: The identity of a pod towards the API.
 secrets: Secrets that pods of this account may use, where that is enforced.
 imagePullSecrets: Secrets with credentials of registries, for pods that name none.
 automountServiceAccountToken: Whether its pods get a token as a file.
Node: A machine that runs pods.
 spec: The desired state of the node.
 status: What the node is and how it is; written by its kubelet.
NodeSpec: The desired state of a node.
 podCIDR: The addresses its pods get.
 podCIDRs: The addresses its pods get, at most one range of each family.
 providerID: What the cloud calls the machine.
 unschedulable: Whether no new pods may come.
 taints: Taints that repel pods without a matching toleration.
 configSource: No longer used.
 externalID: No longer used.
Taint: A property of a node that repels pods.
 key: Its name.
 value: Its value.
 effect: Whether new pods stay away, would rather stay away, or running ones leave too.
 timeAdded: When it was put on.
NodeStatus: What a node is and how it is.
 capacity: All that the machine has.
 allocatable: What of it pods may have.
 phase: No longer used.
 conditions: The current conditions of the node.
 addresses: Where the node is reached.
 daemonEndpoints: The ports of what runs on it.
 nodeInfo: What the machine and its programs are.
 images: Images that lie on the node.
 volumesInUse: Volumes that are mounted there, and must not be taken away.
 volumesAttached: Volumes that are attached to it.
 config: No longer used.
 runtimeHandlers: The ways to run containers there are on it.
 features: What its container runtime can do.
 declaredFeatures: What its kubelet can do that others may build on.
NodeCondition: A condition of a node.
 type: The type of the condition, such as Ready.
 status: True, False or Unknown.
 lastHeartbeatTime: When it was last said.
 lastTransitionTime: When the status last changed.
 reason: The reason in one machine-readable word.
 message: A human-readable explanation.
NodeAddress: Where a node is reached.
 type: What sort of address it is.
 address: The address.
NodeDaemonEndpoints: The ports of what runs on a node.
 kubeletEndpoint: That of the kubelet.
DaemonEndpoint: A port.
 Port: Its number.
NodeSystemInfo: What a machine and its programs are.
 machineID: What tells this installation from others.
 systemUUID: What tells this machine from others.
 bootID: What tells this start of the machine from others.
 kernelVersion: The release of the kernel.
 osImage: The operating system as it calls itself.
 containerRuntimeVersion: What runs the containers, and its version.
 kubeletVersion: The version of the kubelet.
 kubeProxyVersion: No longer used.
 operatingSystem: The sort of operating system.
 architecture: The sort of processor.
 swap: How much may be swapped out.
ContainerImage: An image on a node.
 names: What it is called.
 sizeBytes: How large it is.
AttachedVolume: A volume that is attached to a node.
 name: What it is called.
 devicePath: The device it is found at.
Service: A name and an address for whatever pods do some work.
 spec: The desired state of the service.
 status: The observed state.
ServiceSpec: The desired state of a service.
 ports: The ports it listens on.
 selector: The labels of the pods that stand behind it.
 clusterIP: Its address within the cluster; None for a name without an address.
 clusterIPs: Its addresses within the cluster, at most one of each family.
 type: How far it can be reached.
 externalIPs: Addresses from outside that nodes take traffic for.
 sessionAffinity: Whether a client always comes to the same pod.
 sessionAffinityConfig: For how long that holds.
 loadBalancerIP: The address wanted of the load balancer; no longer used.
 loadBalancerSourceRanges: From where the load balancer takes traffic.
 loadBalancerClass: Which load balancer is meant.
 externalName: The name it stands for, with the type ExternalName.
 externalTrafficPolicy: Whether traffic from outside stays on the node it came to.
 internalTrafficPolicy: Whether traffic from within stays on its node.
 healthCheckNodePort: A port at which nodes tell whether they have pods of it.
 publishNotReadyAddresses: Whether pods that are not ready stand behind it too.
 ipFamilies: The families of its addresses.
 ipFamilyPolicy: Whether it has addresses of one family or of both.
 allocateLoadBalancerNodePorts: Whether ports on nodes are taken for the load balancer.
 trafficDistribution: Which pods are liked more, such as those that are near.
ServicePort: A port of a service.
 name: Its name; needed when there are several.
 protocol: TCP, UDP or SCTP.
 appProtocol: What is spoken there, such as http.
 port: Its number.
 targetPort: The port of the pods it leads to, by number or name; the same number by default.
 nodePort: The port it has on all nodes.
SessionAffinityConfig: For how long a client comes to the same pod.
 clientIP: When clients are known by their address.
ClientIPConfig: Clients that are known by their address.
 timeoutSeconds: For how long they are remembered.
ServiceStatus: The observed state of a service.
 loadBalancer: Where its load balancer is reached.
 conditions: The current conditions of the service.
LoadBalancerStatus: Where a load balancer is reached.
 ingress: Its addresses.
LoadBalancerIngress: An address of a load balancer.
 ip: The address, if it is one.
 hostname: The name, if it is one.
 ipMode: Whether traffic goes past it within the cluster.
 ports: What became of its ports.
Endpoints: The addresses behind a service.
 subsets: Addresses, in groups with the same ports.
EndpointSubset: Addresses with the same ports.
 addresses: Those that take traffic.
 notReadyAddresses: Those that do not, or not yet.
 ports: The ports.
EndpointAddress: An address behind a service.
 ip: The address.
 hostname: A name for it.
 nodeName: The node it is on.
 targetRef: The object it belongs to.
EndpointPort: A port behind a service.
 name: Its name, as the service has it.
 port: Its number.
 protocol: TCP, UDP or SCTP.
 appProtocol: What is spoken there.
Event: Something that happened to an object.
 involvedObject: The object.
 reason: The reason of the event in one machine-readable word.
 message: A human-readable description of the event.
 source: The reporting component.
 firstTimestamp: The time of the first occurrence.
 lastTimestamp: The time of the last occurrence.
 count: The number of occurrences.
 type: Normal or Warning.
 eventTime: The time of the first occurrence.
 series: Repeated occurrences.
 action: What was done or failed.
 related: Another object that has to do with it.
 reportingComponent: The reporting component.
 reportingInstance: The reporting instance.
EventSource: The component that reported an event.
 component: The program.
 host: The node it runs on.
EventSeries: How an event went on.
 count: The number of occurrences.
 lastObservedTime: The time of the last occurrence.
EventsEvent: Something that happened to an object.
 eventTime: The time of the first occurrence.
 series: Repeated occurrences.
 reportingController: The reporting component.
 reportingInstance: The reporting instance.
 action: What was done or failed.
 reason: The reason of the event in one machine-readable word.
 regarding: The object.
 related: Another object that has to do with it.
 note: A human-readable description of the event.
 type: Normal or Warning.
Lease: Something that one at a time may hold, and how long it is held.
 spec: Who holds it.
LeaseSpec: Who holds a lease.
 holderIdentity: The holder.
 leaseDurationSeconds: How long it is held without being renewed.
 acquireTime: When it was taken.
 renewTime: When it was last renewed.
 leaseTransitions: How often it went from one holder to another.
 strategy: How the holder is chosen.
 preferredHolder: Who should have it next.
RuntimeClass: A way to run containers.
 handler: Its ID in the container runtime.
 overhead: What pods take besides their containers.
 scheduling: Which nodes have it.
PriorityClass: How important pods are.
 value: The priority of its pods; more is more important.
 globalDefault: Whether pods that name no class belong to it.
 description: When to use it, for people.
 preemptionPolicy: Whether its pods may preempt others.
CertificateSigningRequest: A request for a certificate.
 spec: The requested properties.
 status: What became of it.
CertificateSigningRequestSpec: The requested certificate.
 request: The request in PEM, in base64.
 signerName: Who is asked to sign.
 expirationSeconds: For how long the certificate should hold.
 usages: What the certificate is for.
 username: The requesting user; set by the server.
 uid: The uid of the requesting user; set by the server.
 groups: The groups of the requesting user; set by the server.
 extra: Further attributes of the requesting user; set by the server.
CertificateSigningRequestStatus: What became of a request.
 conditions: Whether it was approved, denied, or failed.
 certificate: The certificate in PEM, in base64.
CSINode: The CSI drivers on a node.
 spec: The drivers.
CSINodeSpec: The CSI drivers on a node.
 drivers: The drivers.
CSINodeDriver: A CSI driver on a node.
 name: Its name.
 nodeID: What the driver calls the node.
 topologyKeys: Labels that tell where the node is, for the driver.
 allocatable: How many volumes it takes there.
CSIDriver: A driver for storage, and how it is used.
 spec: How it is used.
VolumeAttachment: A request to attach a volume to a node.
 spec: What is to be attached, and where.
 status: Whether it is.
`;

/** Descriptions of the fields that all objects have. */
export const metaDescriptions = `
*
 apiVersion: The group and version in which the object is written, such as v1.
 kind: What sort of object it is, such as Pod.
 metadata: The standard metadata of the object.
 items: The objects of the list.
 fsType: The file system on the device, such as ext4.
 readOnly: Whether nothing may be written there.
ObjectMeta: The metadata of every object.
 name: What the object is called; no other of its kind in its namespace is called so, and it never changes.
 generateName: The beginning of a name to which the server adds something that makes it unique.
 namespace: The namespace the object is in; empty for objects of the whole cluster.
 selfLink: No longer used.
 uid: What tells this object from any other, also from an earlier or later one of the same name; given by the server.
 resourceVersion: Changes with every write; a write with an older one is rejected.
 generation: Incremented with every change of the desired state.
 creationTimestamp: When the server made the object.
 deletionTimestamp: When the object is deleted at the latest; set when the deletion begins.
 deletionGracePeriodSeconds: The grace period of the deletion in seconds.
 labels: Names and values by which objects are found and grouped.
 annotations: Names and values for programs and people; objects are not found by them.
 ownerReferences: The objects to which this one belongs, and with which it goes.
 finalizers: Controllers that must finish before the object is removed; each removes its own finalizer.
 managedFields: The managers of fields; written by the server.
OwnerReference: An object to which another one belongs.
 apiVersion: The group and version of the owner.
 kind: The kind of the owner.
 name: The name of the owner.
 uid: The uid of the owner: another object of the same name is not meant.
 controller: Whether the owner is the one that looks after the object.
 blockOwnerDeletion: Whether the owner must wait for the object to be gone when it is asked to go last.
ManagedFieldsEntry: Fields that one writer has set.
 manager: The field manager.
 operation: How: Apply or Update.
 apiVersion: The version the fields are named in.
 time: When that was done last.
 fieldsType: How the fields are written down.
 fieldsV1: The fields.
 subresource: The part of the object that was written to, if it was a part.
ListMeta: What every list has.
 selfLink: No longer used.
 resourceVersion: As of which version the list is.
 continue: What to ask with for the rest of the list.
 remainingItemCount: How many objects are left, where that is known.
LabelSelector: Chooses objects by their labels; all that is said must hold, and an empty one chooses all.
 matchLabels: Labels that must be there with these values.
 matchExpressions: Conditions on labels.
LabelSelectorRequirement: One condition on a label.
 key: The name of the label.
 operator: How it is compared: In, NotIn, Exists or DoesNotExist.
 values: What it is compared with, for In and NotIn.
Condition: A condition of an object, and since when.
 type: The type of the condition.
 status: True, False or Unknown.
 observedGeneration: Of which generation of the object this was said.
 lastTransitionTime: When the status last changed.
 reason: The reason in one machine-readable word.
 message: A human-readable explanation.
DeleteOptions: How an object is to be deleted.
 gracePeriodSeconds: The grace period; 0 deletes immediately.
 preconditions: What must be true of the object, or it is not deleted.
 orphanDependents: The older way to say what becomes of the objects it owns.
 propagationPolicy: What becomes of the objects it owns.
 dryRun: With All nothing is written.
Preconditions: What must be true of an object before something is done to it.
 uid: It must have this uid.
 resourceVersion: It must be at this version.
Status: How a request went that has no object for an answer.
 status: Success or Failure.
 message: A human-readable description of the error.
 reason: The error reason in one machine-readable word.
 details: More about it.
 code: The HTTP status code.
LocalObjectReference: Another object in the same namespace.
 name: The name of the object.
ObjectReference: Another object.
 kind: Its kind.
 namespace: Its namespace.
 name: Its name.
 uid: Its uid.
 apiVersion: Its group and version.
 resourceVersion: The version of it that is meant.
 fieldPath: The part of it that is meant, such as spec.containers{web}.
SecretReference: A Secret in any namespace.
 name: The name of the Secret.
 namespace: The namespace of the Secret.
TypedLocalObjectReference: An object of any kind in the same namespace.
 apiGroup: The group of its kind; empty for the core group.
 kind: Its kind.
 name: Its name.
TypedObjectReference: An object of any kind.
 apiGroup: The group of its kind; empty for the core group.
 kind: Its kind.
 name: Its name.
 namespace: Its namespace.
`;
