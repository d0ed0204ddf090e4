/** What all objects share. */
export const metaDescriptions = `
*
 apiVersion: The group and version in which the object is written, such as v1.
 kind: What sort of object it is, such as Pod.
 metadata: What every object has: its name, its labels and what the server notes of it.
 items: The objects of the list.
 fsType: The file system on the device, such as ext4.
 readOnly: Whether nothing may be written there.
ObjectMeta: What every object has, whatever its kind.
 name: What the object is called; no other of its kind in its namespace is called so, and it never changes.
 generateName: The beginning of a name to which the server adds something that makes it unique.
 namespace: The namespace the object is in; empty for objects of the whole cluster.
 selfLink: No longer used.
 uid: What tells this object from any other, also from an earlier or later one of the same name; given by the server.
 resourceVersion: Changes with every write; a write that names an older one is refused.
 generation: Counts the changes of what is wanted.
 creationTimestamp: When the server made the object.
 deletionTimestamp: When the object is to be gone at the latest; once it is set the object will go.
 deletionGracePeriodSeconds: How many seconds the object was given to go.
 labels: Names and values by which objects are found and grouped.
 annotations: Names and values for programs and people; objects are not found by them.
 ownerReferences: The objects to which this one belongs, and with which it goes.
 finalizers: Who has to do something before the object may be gone; each takes its own name out when it is done.
 managedFields: Who set which fields; written by the server.
OwnerReference: An object to which another one belongs.
 apiVersion: The group and version of the owner.
 kind: The kind of the owner.
 name: The name of the owner.
 uid: The uid of the owner: another object of the same name is not meant.
 controller: Whether the owner is the one that looks after the object.
 blockOwnerDeletion: Whether the owner must wait for the object to be gone when it is asked to go last.
ManagedFieldsEntry: Fields that one writer has set.
 manager: Who set them.
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
Condition: One thing that is known of an object, and since when.
 type: What it is about.
 status: True, False or Unknown.
 observedGeneration: Of which generation of the object this was said.
 lastTransitionTime: When it last became something else.
 reason: Why, in one word for programs.
 message: Why, for people.
DeleteOptions: How an object is to be deleted.
 gracePeriodSeconds: How long it may take to go; 0 means at once.
 preconditions: What must be true of the object, or it is not deleted.
 orphanDependents: The older way to say what becomes of the objects it owns.
 propagationPolicy: What becomes of the objects it owns.
 dryRun: With All nothing is written.
Preconditions: What must be true of an object before something is done to it.
 uid: It must have this uid.
 resourceVersion: It must be at this version.
Status: How a request went that has no object for an answer.
 status: Success or Failure.
 message: What went wrong, for people.
 reason: What went wrong, in one word for programs.
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
